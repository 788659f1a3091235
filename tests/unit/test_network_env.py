"""What a setup's box is told of this machine's way to the package indexes: never a credential, unless the operator says so."""

from __future__ import annotations

import pytest

from regreen.adapters.sandbox.host import network_env

TOKENS = [
    "https://me:hunter2@pypi.example.org/simple",
    "https://9f8a7c6d5e4b3a21@pypi.example.org/simple",
    "me:hunter2@pypi.example.org/simple",
    "https://dl.packages.example/k7Qx2mVb9TzLw4Np/acme/python/simple/",
    "https://fury.packages.example/4jT8sKq1ZxWb7Ry3Uv/acme/",
    "https://pypi.example.org/simple?token=9f8a7c6d5e4b3a21",
    "https://index.example/simple https://me:hunter2@pypi.example.org/simple",
]
PUBLIC = [
    "https://index.example/simple",
    "https://artifacts.example.org/artifactory/api/pypi/pypi-virtual/simple",
    "http://10.0.0.7:3141/root/pypi/+simple/",
    "https://eu-west-1.mirror.example.org/repository/pypi-proxy/simple",
    "https://proxy.example.org,direct",
]


@pytest.mark.parametrize("variable", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "NPM_CONFIG_REGISTRY", "GOPROXY"])  # fmt: skip
@pytest.mark.parametrize("address", TOKENS)
def test_an_index_with_a_credential_is_told_only_if_the_operator_says_so(
    variable: str, address: str
) -> None:
    host = {variable: address}
    assert address not in network_env(None, host).values()
    assert network_env(None, host | {"REGREEN_INDEX_CREDENTIALS": "1"})[variable] == address


@pytest.mark.parametrize("address", PUBLIC)
def test_an_index_without_one_is_told(address: str) -> None:
    assert network_env(None, {"PIP_INDEX_URL": address})["PIP_INDEX_URL"] == address


@pytest.mark.parametrize("proxy", ["user:hunter2@proxy:3128", "http://user:hunter2@proxy:3128", "http://proxy:3128"])  # fmt: skip
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "http_proxy", "ALL_PROXY"])
def test_no_proxy_of_this_machine_is_told(variable: str, proxy: str) -> None:
    told = network_env(None, {variable: proxy, "REGREEN_INDEX_CREDENTIALS": "1"})
    assert not any("proxy" in value for value in told.values())
