"""Documents that are files of privasso, or refused as such."""

import numpy as np
import pytest

from privasso._documents import DocumentError, Fields, check_moderate, json_text


def test_a_document_is_one_object_with_moderate_numbers():
    assert json_text({"lam": 1.5}) == '{\n "lam": 1.5\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"lam": np.inf})
    check_moderate(b=np.array([1.0, -1e100]), lam=None)
    with pytest.raises(DocumentError, match=r"b holds a number beyond ±1e\+150"):
        check_moderate(b=np.array([1.0, -1e200]))


def test_a_file_of_another_kind_is_called_by_its_name():
    with pytest.raises(DocumentError, match="not a model but a kept release; `privasso fit"):
        Fields.of_file({"format": "privasso-kept-release"}, "a model", "privasso-model", 1)
