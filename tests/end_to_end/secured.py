"""Clusters that people log in to: `mirror` with `secret`, by every mechanism of MECHANISMS, plain or over TLS."""

import pathlib

from tests.end_to_end import kafka
from tests.support import kafka_wire, ports, sasl

USER, PASSWORD = "mirror", "secret"
MECHANISMS = {
    "PLAIN": lambda: sasl.plain(USER, PASSWORD),
    "SCRAM-SHA-512": lambda: sasl.scram_sha_512(USER, PASSWORD),
    "OAUTHBEARER": lambda: sasl.oauthbearer(USER),
}
PROTOCOLS = {"login": "SASL_PLAINTEXT", "secure": "SASL_SSL"}  # by listener
_MODULES = "org.apache.kafka.common.security"
_JAAS = {  # (of the brokers, of the clients)
    "PLAIN": (
        f'{_MODULES}.plain.PlainLoginModule required username="unused" password="unused" user_{USER}="{PASSWORD}";',
        f'{_MODULES}.plain.PlainLoginModule required username="{USER}" password="{PASSWORD}";',
    ),
    "SCRAM-SHA-512": (
        f"{_MODULES}.scram.ScramLoginModule required;",
        f'{_MODULES}.scram.ScramLoginModule required username="{USER}" password="{PASSWORD}";',
    ),
    "OAUTHBEARER": (
        f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="unused";',
        f'{_MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{USER}";',
    ),
}


class SecuredCluster(kafka.Cluster):
    """`login_lifetime`: ms after which a client has to log in again. The plain listener needs no login."""

    def __init__(self, version, authority, login_lifetime, **options):
        scram = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
        super().__init__(version, format_arguments=["--add-scram", scram], **options)
        self._authority = authority
        self._login_lifetime = login_lifetime
        self._login_ports = {}

    def launch(self):
        self._login_ports = {node: {name: ports.free_ports() for name in PROTOCOLS} for node in self.nodes}
        super().launch()

    def login_bootstrap(self, listener):
        return [f"127.0.0.1:{self._login_ports[node][listener]}" for node in self.nodes]

    def _properties(self, node):
        properties = super()._properties(node)
        for listener, protocol in PROTOCOLS.items():
            name = listener.upper()
            for which in ("listeners", "advertised.listeners"):
                properties[which] += f",{name}://127.0.0.1:{self._login_ports[node][listener]}"
            properties["listener.security.protocol.map"] += f",{name}:{protocol}"
            for mechanism, (jaas, _) in _JAAS.items():
                properties[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = jaas
        store = self.directory / "broker.pem"  # the key and its certificate
        parts = [pathlib.Path(self._authority / f"broker.{suffix}") for suffix in ("key", "pem")]
        store.write_text("".join(part.read_text() for part in parts))
        properties.update({
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "connections.max.reauth.ms": self._login_lifetime,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": store,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._authority / "ca.pem",
        })
        return properties


def java_properties(address, listener, mechanism, authority):
    """What a Java client needs."""
    return {
        "bootstrap.servers": "%s:%d" % address,
        "security.protocol": PROTOCOLS[listener],
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": _JAAS[mechanism][1],
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority / "ca.pem",
    }


def librdkafka_properties(listener, authority):
    """What a client with librdkafka needs: PLAIN, which every version of it can do."""
    return {
        "security.protocol": PROTOCOLS[listener],
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "ssl.ca.location": authority / "ca.pem",
    }


class RefusedLogin(Exception):
    """What the broker said when it refused, where it did."""


class Client(kafka_wire.Connection):
    """A connection that can log in, by either version of the handshake."""

    def __init__(self, address, tls=None):
        super().__init__(*address)
        if tls is not None:
            self.sock = tls.wrap_socket(self.sock, server_hostname=address[0])

    def handshake(self, mechanism, version):
        answer = self.call("SaslHandshake", version, {"mechanism": mechanism})
        if answer["error_code"]:
            raise RefusedLogin(answer["error_code"], answer["mechanisms"])

    def send_token(self, token):
        self.sock.sendall(kafka_wire.frame(token))

    def receive_token(self):
        return kafka_wire.read_frame(self.sock)

    def login(self, mechanism, version, client=None):
        """Returns for how long the login is good, in ms; nothing where the broker does not say."""
        self.handshake(mechanism, version)
        client = client or MECHANISMS[mechanism]()
        token, lifetime = client.send(None), None
        while token is not None:
            if version == 0:
                self.send_token(token)
                answer = self.receive_token()
            else:
                body = self.call("SaslAuthenticate", 2, {"auth_bytes": token})
                if body["error_code"]:
                    raise RefusedLogin(body["error_code"], body["error_message"])
                answer, lifetime = body["auth_bytes"], body["session_lifetime_ms"]
            try:
                token = client.send(answer)
            except StopIteration:
                token = None
        return lifetime
