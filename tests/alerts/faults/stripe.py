"""A stand-in for Stripe: the API that billing calls, and customers who pay on its pages. A fault sets its behaviour."""
import hashlib
import hmac
import http.server
import itertools
import json
import pathlib
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import cluster

KEY, WEBHOOK = "sk_test_observed", "whsec_observed"


class Stripe:
    def __init__(self):
        self.sessions, self.intents, self.refunds, self.disputes, self.number = {}, {}, {}, {}, itertools.count(1)
        self.fails = False  # every call gets 500
        self.declines = False  # charges of saved cards
        self.extra_cents = 0  # paid above what was asked
        self.refund_status = "succeeded"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.stripe = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.webhook_port = cluster.free_port()
        self.folder = tempfile.TemporaryDirectory()

    def settings(self):
        """Settings for billing.payments."""
        for name, secret in (("key", KEY), ("webhook", WEBHOOK)):
            pathlib.Path(f"{self.folder.name}/{name}").write_text(secret)
        return (f"payments: {{provider: stripe, stripe_secret_key_file: {self.folder.name}/key, "
                f"stripe_webhook_secret_file: {self.folder.name}/webhook, webhook_listen: '127.0.0.1:{self.webhook_port}', "
                f"success_url: 'https://gate.example.test/paid', stripe_base_url: 'http://127.0.0.1:{self.server.server_port}', "
                "reload_sweep_seconds: 1}")

    def id(self, kind):
        return f"{kind}_observed_{next(self.number)}"

    def intent(self, cents, customer, metadata):
        intent = {"id": self.id("pi"), "object": "payment_intent", "amount": cents, "currency": "usd", "amount_received": cents,
                  "created": int(time.time()), "customer": customer, "metadata": metadata, "status": "succeeded",
                  "latest_charge": {"id": self.id("ch"), "object": "charge", "amount_refunded": 0}}
        self.intents[intent["id"]] = intent
        return intent

    def call(self, method, path, form):
        """Status and body."""
        what, _, name = path.removeprefix("/v1/").removeprefix("checkout/").partition("/")
        if self.fails:
            return 500, {"error": {"type": "api_error"}}
        if what == "customers":
            return 200, {"id": self.id("cus"), "object": "customer"}
        if what == "sessions":
            if method == "POST" and not name:
                return 200, self.page(form)
            return 200, self.sessions[name.partition("/")[0]]
        if what == "payment_intents" and method == "POST":
            return self.charge(form)
        if what == "refunds" and method == "POST":
            refund = {"id": self.id("re"), "object": "refund", "status": self.refund_status, "metadata": nested(form, "metadata")}
            self.refunds[refund["id"]] = refund
            return 200, refund
        if what == "radar":
            name = ""  # the list of fraud warnings, which is empty
        rows = {"payment_intents": self.intents, "refunds": self.refunds, "disputes": self.disputes, "radar": {}}[what]
        return 200, rows[name] if name else {"object": "list", "data": [], "has_more": False}

    def page(self, form):
        session = {"id": self.id("cs"), "object": "checkout.session", "mode": form["mode"], "status": "open", "customer": form["customer"],
                   "metadata": nested(form, "metadata"), "payment_intent": None, "setup_intent": None}
        session["url"] = f"https://pay.example.test/{session['id']}"
        self.sessions[session["id"]] = session
        session["amount_total"] = int(form.get("line_items[0][price_data][unit_amount]", 0))
        return session

    def charge(self, form):
        intent = self.intent(int(form["amount"]), form["customer"], nested(form, "metadata"))
        if not self.declines:
            return 200, intent
        intent |= {"status": "requires_payment_method", "amount_received": 0, "last_payment_error": {"decline_code": "insufficient_funds"}}
        return 402, {"error": {"type": "card_error", "code": "card_declined", "payment_intent": intent}}

    def newest_page(self, workspace):
        return [session for session in self.sessions.values() if session["metadata"].get("tollgate_workspace") == workspace][-1]

    def pay(self, session):
        """The customer completes the page."""
        session["status"] = "complete"
        if session["mode"] == "setup":
            card = {"id": self.id("pm"), "object": "payment_method", "type": "card", "customer": session["customer"],
                    "card": {"brand": "visa", "last4": "4242", "exp_month": 8, "exp_year": 2031}}
            session["setup_intent"] = {"id": self.id("seti"), "status": "succeeded", "payment_method": card}
        else:
            session["payment_intent"] = self.intent(session["amount_total"] + self.extra_cents, session["customer"], session["metadata"])
        self.tell(session)

    def dispute(self, intent, seconds):
        """The customer disputes the charge; evidence is due after these seconds."""
        dispute = {"id": self.id("du"), "object": "dispute", "status": "needs_response", "amount": intent["amount"], "payment_intent": intent,
                   "evidence_details": {"due_by": int(time.time()) + seconds}}
        self.disputes[dispute["id"]] = dispute
        self.tell(dispute, kind="charge.dispute.created")
        return dispute

    def tell(self, session, secret=WEBHOOK, kind="checkout.session.completed"):
        """A webhook about the page, or about another object."""
        body = json.dumps({"id": self.id("evt"), "object": "event", "type": kind, "data": {"object": session}})
        now = int(time.time())
        signature = hmac.new(secret.encode(), f"{now}.{body}".encode(), hashlib.sha256).hexdigest()
        call = urllib.request.Request(f"http://127.0.0.1:{self.webhook_port}/webhooks/stripe", body.encode(),
                                      {"Content-Type": "application/json", "Stripe-Signature": f"t={now},v1={signature}"})
        with cluster.DIRECT.open(call, timeout=10):
            pass


def nested(form, name):
    """The members of name in "name[member]=…"."""
    return {key[len(name) + 1:-1]: value for key, value in form.items() if key.startswith(name + "[")}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.serve()

    def do_POST(self):
        self.serve()

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        form = dict(urllib.parse.parse_qsl(body))
        path = urllib.parse.urlsplit(self.path).path
        status, answer = self.server.stripe.call(self.command, path, form)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
