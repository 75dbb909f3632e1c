import pytest

from privasso.figures import figure, save


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_same_figure_is_the_same_file(ending, tmp_path):
    for name in ("a", "b"):
        drawing = figure(3, 2)
        drawing.subplots().plot([1, 2, 3])
        save(drawing, tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"a.{ending}", f"b.{ending}"]
