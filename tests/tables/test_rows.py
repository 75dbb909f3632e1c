"""The number of rows is counted, not believed."""

import io

import polars as pl
import pytest

from privasso.tables import open_table


def forged(compression):
    """Files of 40 rows in which one number, or all, that may be the number of rows is 2²⁴."""
    buffer = io.BytesIO()
    pl.DataFrame({"a": [k / 7 for k in range(40)]}).write_ipc(buffer, compression=compression)
    whole, number = buffer.getvalue(), (40).to_bytes(8, "little")
    places = [at for at in range(len(whole)) if whole.startswith(number, at)]
    assert places
    for group in [*([at] for at in places), places]:
        data = bytearray(whole)
        for at in group:
            data[at : at + 8] = (1 << 24).to_bytes(8, "little")
        yield bytes(data)


@pytest.mark.parametrize(
    "compression", ["uncompressed", pytest.param("zstd", marks=pytest.mark.slow)]
)
def test_rows_that_a_file_only_claims_are_not_believed(tmp_path, compression):
    path, believed = tmp_path / "forged.arrow", []
    for data in forged(compression):
        path.write_bytes(data)
        try:
            believed.append(open_table(path).n_rows)
        except ValueError as error:
            assert "cannot be read as arrow" in str(error)  # noqa: PT017
    assert all(n <= 40 for n in believed)


@pytest.mark.parametrize("ending", ["arrow", "parquet", "csv"])
def test_rows_are_counted(tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    frame = pl.DataFrame({"town": ["north", None, "east"], "a": [1.0, 2.0, None]})
    {"arrow": frame.write_ipc, "parquet": frame.write_parquet, "csv": frame.write_csv}[ending](path)
    assert open_table(path).n_rows == 3
