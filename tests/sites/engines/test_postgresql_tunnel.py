"""PostgreSQL's protocol as far as it is followed on the way to a host."""

from benchbook.sites.engines.postgresql_tunnel import Messages, has_answered, is_request


def test_whose_turn_it_is_is_known_from_messages_cut_anywhere():
    """A message is a type, four bytes of length that count themselves, and a body."""
    parse, sync = b"P\0\0\0\x08\0\0\0\0", b"S\0\0\0\x04"
    first = b"\0\0\0\x08\0\x03\0\0"
    client = Messages(is_request, is_bare=True)
    # The first has no type; it asks once it is whole.
    assert [client.take(first[:3]), client.take(first[3:])] == [False, True]
    assert [client.take(parse), client.take(sync[:4]), client.take(sync[4:])] == [False, False, True]
    flush = b"H\0\0\0\x04"
    assert client.take(sync + flush) and not client.take(flush), "it is for what was asked before it"
    assert not client.take(sync + parse), "what comes after has not been asked yet"
    parameter, ready = b"S\0\0\0\x06a\0", b"Z\0\0\0\x05I"
    asked, let_in = b"R\0\0\0\x08\0\0\0\x0a", b"R\0\0\0\x08\0\0\0\0"
    server = Messages(has_answered)
    assert server.take(asked), "it waits for the password"
    assert [server.take(let_in + parameter), server.take(ready)] == [False, True]
