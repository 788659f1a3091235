"""Which addresses count as private, in whatever disguise."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from regreen.adapters.sandbox.egress_proxy import is_public

PRIVATE = """
0.0.0.0 10.1.2.3 100.64.0.1 100.127.255.255 127.0.0.1 127.255.0.1 169.254.169.254 172.16.0.1 172.31.255.255
192.168.1.1 192.0.0.192 198.18.0.1 224.0.0.1 239.1.1.1 255.255.255.255 240.0.0.1
:: ::1 ::127.0.0.1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe 64:ff9b::a9fe:a9fe 64:ff9b::10.0.0.1 64:ff9b:1::1
fe80::1 fd00:ec2::254 fc00::1 fec0::1 ff02::1 2002:7f00:1:: 2002:a9fe:a9fe:: 2001:0:1234::1 100::1
"""
PUBLIC = "1.1.1.1 8.8.8.8 100.63.0.1 100.128.0.1 172.15.0.1 172.32.0.1 2606:4700::1111 2a00:1450:4001::1 64:ff9b::1.1.1.1 ::ffff:1.1.1.1"


@pytest.mark.parametrize("address", PRIVATE.split())
def test_private_addresses_are_known(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public_ones_as_well(address: str) -> None:
    assert is_public(ip_address(address))
