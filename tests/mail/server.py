"""A mail server (aiosmtpd) for mail_test.cc: STARTTLS or TLS from the first byte, and a name and password, are required.

server.py PORT FOLDER starttls|tls. Prints the port as JSON; each mail becomes a file of FOLDER with
its envelope as JSON in the first line.
"""
import json
import os
import ssl
import sys
import threading

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult

port, folder, mode = int(sys.argv[1]), sys.argv[2], sys.argv[3]
count = 0


class Handler:
    async def handle_DATA(self, server, session, envelope):
        global count
        count += 1
        head = {"from": envelope.mail_from, "to": envelope.rcpt_tos, "tls": session.ssl is not None,
                "user": session.auth_data}
        with open(f"{folder}/new", "wb") as file:
            file.write(json.dumps(head).encode() + b"\n" + envelope.content)
        os.rename(f"{folder}/new", f"{folder}/mail-{os.getpid()}-{count}")
        return "250 taken"


def authenticate(server, session, envelope, mechanism, data):
    right = data.login == b"gate" and data.password == b"canary-mail-password"
    return AuthResult(success=right, auth_data="gate" if right else None)


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{folder}/certificate.pem", f"{folder}/key.pem")


class Server(Controller):
    def factory(self):
        starttls = mode == "starttls"
        return SMTP(self.handler, hostname="mail.test", tls_context=context if starttls else None,
                    require_starttls=starttls, auth_required=True, auth_require_tls=starttls,
                    authenticator=authenticate)


server = Server(Handler(), hostname="127.0.0.1", port=port, ssl_context=context if mode == "tls" else None)
server.start()
print(json.dumps({"port": server.port}), flush=True)
threading.Event().wait()
