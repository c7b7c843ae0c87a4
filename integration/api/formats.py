"""What schemathesis has to know about kvnet's descriptions."""

import schemathesis
from hypothesis import strategies as st

# The formats, so that values get past the first look at them.
addresses = st.ip_addresses().map(str)
prefixes = st.ip_addresses(v=4).flatmap(
    lambda a: st.integers(0, 32).map(lambda n: f"{a}/{n}")
)
macs = st.lists(st.integers(0, 255), min_size=6, max_size=6).map(
    lambda octets: ":".join(f"{o:02x}" for o in octets)
)
devices = st.integers(0, 2**64 - 1).map(lambda n: f"of:{n:016x}")
numbers = st.integers(0, 20000000).map(str)

for name, values in {
    "ip": addresses,
    "cidr": prefixes,
    "mac": macs,
    "device": devices,
    "number": numbers,
}.items():
    schemathesis.openapi.format(name, values)


@schemathesis.check
def content_type_is_described(ctx, response, case):
    """An answer with a body has a described content type. schemathesis's own check
    wants one of answers without a body, too."""
    if not response.content:
        return
    got = response.headers.get("content-type", [""])[0].partition(";")[0]
    described = case.operation.definition.raw.get("produces", ["application/json"])
    assert got in described, f"the content type is {got!r}, described are {described}"
