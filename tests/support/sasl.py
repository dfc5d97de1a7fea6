"""SASL mechanisms as their clients speak them, without a library.

A mechanism is a generator: it yields a token to send and is sent the broker's answer. `None` for an answer starts it.

    login = plain("user", "secret")
    token = login.send(None)
    ...
    token = login.send(answer)     # StopIteration: through
"""

import base64
import hashlib
import hmac
import json
import os
import time


def plain(user, password):
    yield f"\0{user}\0{password}".encode()


def scram_sha_512(user, password):
    nonce = base64.b64encode(os.urandom(18)).decode()
    first = f"n={user},r={nonce}"
    challenge = (yield f"n,,{first}".encode()).decode()
    fields = dict(field.split("=", 1) for field in challenge.split(","))
    if not fields["r"].startswith(nonce):
        raise ValueError("the broker's nonce does not begin with the client's")
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    final = f"c=biws,r={fields['r']}"
    messages = f"{first},{challenge},{final}".encode()
    client_key = hmac.digest(salted, b"Client Key", "sha512")
    signature = hmac.digest(hashlib.sha512(client_key).digest(), messages, "sha512")
    proof = bytes(a ^ b for a, b in zip(client_key, signature))
    verdict = yield f"{final},p={base64.b64encode(proof).decode()}".encode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), messages, "sha512")
    if verdict != b"v=" + base64.b64encode(expected):
        raise ValueError(f"the broker does not know the password: {verdict}")


def oauthbearer(user, lifetime=3600):
    """With a token that nobody has signed, as brokers take it where nothing else is configured."""

    def part(claims):
        return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")

    now = int(time.time()) - 1  # brokers take no token of the future, by the millisecond
    token = f"{part({'alg': 'none'})}.{part({'sub': user, 'iat': now, 'exp': now + lifetime})}."
    answer = yield f"n,,\1auth=Bearer {token}\1\1".encode()
    if answer:
        yield b"\1"  # an error, which the client has to acknowledge
