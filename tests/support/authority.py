"""Certificates for tests, by the openssl command."""

import ssl
import subprocess

from tests.support.process import temporary_directory


class Authority:
    """Certificates by the openssl command: `NAME.pem` and `NAME.key`, signed by `ca.pem`."""

    def __init__(self):
        self.directory = temporary_directory("tls-")
        usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]  # Python from 3.13 on asks for it
        subject = ["-days", "2", "-subj", "/CN=tests", "-out", self / "ca.pem"]
        self._openssl("req", "-x509", *self._new_key("ca"), *usage, *subject)

    def __truediv__(self, name):
        return str(self.directory / name)

    def issue(self, name, subject_alternatives="DNS:localhost,IP:127.0.0.1"):
        extensions = f"subjectAltName={subject_alternatives}\nauthorityKeyIdentifier=keyid\n"
        (self.directory / f"{name}.ext").write_text(extensions)
        self._openssl("req", "-new", *self._new_key(name), "-subj", f"/CN={name}", "-out", self / f"{name}.csr")
        signer = ["-CA", self / "ca.pem", "-CAkey", self / "ca.key", "-CAcreateserial"]
        files = ["-in", self / f"{name}.csr", "-extfile", self / f"{name}.ext", "-out", self / f"{name}.pem"]
        self._openssl("x509", "-req", "-days", "2", *signer, *files)

    def _new_key(self, name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self / f"{name}.key"]

    @staticmethod
    def _openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)

    def client_context(self, certificate=None):
        context = ssl.create_default_context(cafile=self / "ca.pem")
        if certificate:
            context.load_cert_chain(self / f"{certificate}.pem", self / f"{certificate}.key")
        return context

    def server_context(self, certificate, asks=False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self / f"{certificate}.pem", self / f"{certificate}.key")
        if asks:
            context.load_verify_locations(self / "ca.pem")
            context.verify_mode = ssl.CERT_REQUIRED
        return context
