"""The server answers its own page and nobody else."""

import contextlib
import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import privasso as pv
from privasso.accounting import gaussian_delta
from privasso.explore import Explorer, Settings, answer
from privasso.theory import label_sensitivity


@pytest.fixture(scope="module")
def server():
    with Explorer(Settings()) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def ask(server, method="POST", path="ask", body=None, secret=None, **headers):
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    host = headers.pop("Host", f"127.0.0.1:{server.server_port}")
    secret = server.token if secret is None else secret
    text = body if isinstance(body, (str, bytes)) else json.dumps(body)
    given = {"Host": host, "Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    with contextlib.closing(link):
        link.request(method, f"/{secret}/{path}", text if method == "POST" else None, given)
        answer = link.getresponse()
        return answer.status, answer.read(), answer.headers


QUESTION = {"what": "point", "settings": Settings().to_dict() | {"scales": None}}


def test_an_answer_has_the_numbers_of_the_library(server):
    status, body, _ = ask(server, body=QUESTION)
    assert status == 200
    model = pv.Model()
    fp = pv.state_evolution(model, 0.2, pv.Gram(0.05))
    assert json.loads(body)["E"] == fp.E
    assert json.loads(body)["advantage"] == fp.advantage()


def test_the_page(server):
    status, body, headers = ask(server, "GET", "")
    assert status == 200
    assert b"<h1>" in body
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("code", "change"),
    [
        (403, {"Host": "evil.example:80"}),  # a name that was made to point to this machine
        (403, {"Origin": "http://evil.example"}),
        (403, {"Sec_Fetch_Site": "cross-site"}),
        (404, {"secret": ""}),
        (404, {"secret": "guess"}),
        (404, {"path": "../../etc/passwd"}),
        (404, {"method": "GET", "path": "../../etc/passwd"}),
        (404, {"method": "GET", "path": "assets/app.js"}),
        (415, {"Content_Type": "text/plain"}),
        (413, {"body": "x" * 1_100_000}),
        (413, {"Content_Length": "²"}),
        (413, {"Content_Length": "-1"}),
        (413, {"Content_Length": "1e3"}),
        (413, {"Content_Length": "9" * 5000}),
        (403, {"method": "GET", "path": "", "Sec_Fetch_Site": "cross-site"}),
        (
            403,
            {
                "method": "GET",
                "path": "",
                "Sec_Fetch_Site": "cross-site",
                "Sec_Fetch_Mode": "navigate",
                "Sec_Fetch_Dest": "iframe",
            },
        ),
        (400, {"body": "{"}),
        (400, {"body": b"\xff"}),
        (400, {"body": "[" * 100_000}),
        (400, {"body": {"what": "point"}}),
        (400, {"body": {"what": 1, "settings": {}}}),
    ],
)
def test_what_is_refused(server, code, change):
    try:
        status, body, _ = ask(server, **{"body": QUESTION} | change)
    except (BrokenPipeError, ConnectionResetError):
        assert code == 413  # the answer came before all was sent
        return
    assert status == code
    assert b"Traceback" not in body
    assert server.token.encode() not in body


def raw(server, request):
    """The first line of the answer to a request that no library would send."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as link:
        link.sendall(request)
        return link.recv(4096).partition(b"\r\n")[0]


@pytest.mark.parametrize("path", ["x", "*", "?", "", "http://evil/x"])
def test_a_path_that_is_none(server, capsys, path):
    host = f"127.0.0.1:{server.server_port}"
    first = raw(server, f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    # Two words are a request of HTTP 0.9, whose answer has no code.
    assert first.split()[1] in (b"400", b"404") or (not path and first.startswith(b"the address"))
    assert capsys.readouterr().err == ""


def test_many_at_the_same_time(server):
    """All of 150 clients that come at once are answered."""
    request = f"GET /{server.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n"
    together = threading.Barrier(150)

    def client(_):
        together.wait()
        return raw(server, request.encode())

    with ThreadPoolExecutor(150) as pool:
        assert set(pool.map(client, range(150))) == {b"HTTP/1.1 200 OK"}


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("all", {}),
        ("point", {"law": "x"}),
        ("point", {"noise_by": "x"}),
        ("point", {"lam": "1"}),
        ("point", {"lam": -1.0}),
        ("point", {"lam": None}),
        ("point", {"law": "own"}),
        ("point", {"law": "own", "scales": [1.0, None]}),
        ("point", {"more": 1}),
        ("point", {"n_features": 1e9}),
        ("curves", {"alpha": 1e300, "rho": 1.5}),
    ],
)
def test_settings_that_make_no_sense(server, what, change):
    asked = {"what": what, "settings": QUESTION["settings"] | change}
    status, body, _ = ask(server, body=asked)
    assert status == 200
    assert json.loads(body)["refused"]


def test_it_listens_to_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"


def test_the_level_meets_the_budget_of_the_labels():
    """The δ of the Gaussian mechanism with this noise, at ε, is the one that was asked for."""
    settings = Settings(noise_by="labels", gamma=0.5, epsilon=2.0, delta=1e-5, width=3.0)
    noise = pv.PowerLaw(settings.level, 0.5)
    deviation = (0.1 * settings.model.scales.moment(1) + 0.1**2) ** 0.5
    mu = 3.0 * deviation * label_sensitivity(settings.model, noise)
    assert gaussian_delta(2.0, mu) == pytest.approx(1e-5, rel=1e-6)
    assert answer("point", settings)["label_epsilon"] == pytest.approx(2.0, rel=1e-6)


def test_curves_and_map_are_those_of_the_library():
    settings = Settings(law="lognormal", gamma=1.3)
    model = settings.model
    curve = next(c for c in answer("curves", settings)["curves"] if c["yours"])
    k = len(curve["sigma"]) // 2
    fp = pv.state_evolution(model, 0.2, pv.PowerLaw(curve["sigma"][k], 1.3))
    assert curve["E"][k] == pytest.approx(fp.E, rel=1e-5)
    assert curve["onavekl"][k] == pytest.approx(fp.onavekl(), rel=1e-5)
    found = answer("map", settings)
    row, column = 8, 3
    at = row * len(found["sigma"]) + column
    fp = pv.state_evolution(model, found["lam"][row], pv.PowerLaw(found["sigma"][column], 1.3))
    assert found["E"][at] == pytest.approx(fp.E, rel=1e-5)
    scale, deviation = found_noise(settings)
    expected = pv.PowerLaw(1.0, 1.3).variances([scale**2], weights=None)
    assert expected == pytest.approx(1.0)  # one column has the mean; the law gives the rest:
    mean = model.scales.moment(1.3)
    assert deviation == pytest.approx((scale ** (2 * 1.3) / mean) ** 0.5)


def found_noise(settings):
    found = answer("curves", settings)
    return found["scales"][5], found["deviation"]["1.3"][5]


def test_default_fits_are_predicted_for_data_of_this_kind():
    """Where rows are many, R² is the part that can be explained; labels cost what records cost."""
    settings = Settings(alpha=2000.0, law="constant", n_features=20, rho=0.5, sigma_xi=0.5)
    found = answer("fits", settings)
    possible = 0.5 / (0.5 + 0.25)
    assert (found["columns"], found["rows"]) == (20, 40_000)
    for kind in ("records", "labels"):
        r2 = found[kind]
        assert r2 == sorted(r2)  # more with every ε
        assert r2[-1] == pytest.approx(possible, abs=0.01)
        assert r2[1] < possible
    few = answer("fits", replace(settings, alpha=0.5))
    assert max(few["records"]) < 0.3 < possible


def test_bounds_of_labels_are_in_units_of_their_deviation():
    """Labels on another scale have the same ε."""
    first = Settings(law="constant", sigma=0.1)
    second = Settings(law="constant", value=3.0, sigma_xi=0.3, sigma=0.1 * 9.0)
    assert second.label_epsilon(0.9) == pytest.approx(first.label_epsilon(0.1), rel=1e-9)
