"""Payments, refunds, auto-reload, and notices about money."""
import contextlib
import hashlib
import urllib.error

import cluster
from faults.base import Calls, Fault, change_database, new_customer
from faults.stripe import Stripe

STRIPE = Stripe()
# The mail server of notices is down.
FLAGS = ("--billing", STRIPE.settings(),
         "--billing", f"alerts: {{smtp_url: 'smtp://127.0.0.1:{cluster.free_port()}', mail_from: gate@example.test, sweep_seconds: 1}}")


def start_payment(observed, workspace, usd="20"):
    """The page on which the customer pays."""
    observed.operator("payment", "create", usd, "--workspace", workspace)
    return cluster.wait_for("a page to pay on", 10, lambda: page_of(workspace))


def page_of(workspace):
    with contextlib.suppress(IndexError):
        return STRIPE.newest_page(workspace)


def wait_for_state(observed, workspace, state):
    """The payment of the workspace, once it is in that state."""
    return cluster.wait_for(f"a payment in state {state}", 30, lambda: next(
        (row for row in observed.operator("payment", "list", "--workspace", workspace)["payments"] if row["state"] == state), None))


class BadSignatures(Calls):
    """webhooks come that are signed with another secret"""
    alerts = ("WebhookSignatures",)
    pause = 0.3

    def call(self, observed):
        with contextlib.suppress(urllib.error.HTTPError):
            STRIPE.tell({"id": "cs_none", "mode": "payment"}, secret="whsec_another")


class ProviderFails(Fault):
    """the payment provider answers 500"""
    alerts = ("PaymentProviderFails", "PaymentUnknown")

    def begin(self, observed):
        pages = []
        for number in range(4):
            workspace, _ = new_customer(observed, f"provider-fails-{number}")
            pages.append(start_payment(observed, workspace))
            STRIPE.tell(pages[-1])  # the page was requested and is open
        for number in range(4):
            wait_for_state(observed, f"provider-fails-{number}", "submitted")
        STRIPE.fails = True
        for page in pages:
            STRIPE.tell(page)

    def end(self, observed):
        STRIPE.fails = False


class AnotherAmount(Fault):
    """the payment provider's amount differs from the payment"""
    alerts = ("PaymentMismatch",)

    def begin(self, observed):
        STRIPE.extra_cents = 1
        workspace, _ = new_customer(observed, "another-amount")
        STRIPE.pay(start_payment(observed, workspace))

    def end(self, observed):
        STRIPE.extra_cents = 0


class CreditRefused(Fault):
    """the ledger has another entry under the id of a payment's credit"""
    alerts = ("PaymentWithoutCredit",)

    def begin(self, observed):
        workspace, _ = new_customer(observed, "credit-refused")
        page = start_payment(observed, workspace)
        intent = f"pi_observed_{next(STRIPE.number) + 1}"  # intent of the paid page
        self.id = "pay-" + hashlib.sha256(f"charge:stripe:{intent}".encode()).hexdigest()[:40]
        columns = change_database(observed, "billing", "SELECT name FROM pragma_table_info('command')")
        values = ", ".join({"id": "?", "amount": "1"}.get(name, name) for (name,) in columns)
        change_database(observed, "billing", f"INSERT INTO command SELECT {values} FROM command WHERE workspace = ? LIMIT 1",
                        (self.id, workspace))
        STRIPE.pay(page)
        assert page["payment_intent"]["id"] == intent

    def end(self, observed):
        change_database(observed, "billing", "DELETE FROM command WHERE id = ?", (self.id,))


class RefundRefused(Fault):
    """the provider cannot pay a refund out, and the database refuses its credit"""
    alerts = ("RefundNotPaidOut", "RefundFailed")

    def begin(self, observed):
        workspace, _ = new_customer(observed, "refund-refused")
        STRIPE.pay(start_payment(observed, workspace))
        payment = wait_for_state(observed, workspace, "succeeded")["payment"]
        cluster.wait_for("the credit", 20, lambda: change_database(
            observed, "billing", "SELECT id FROM payment WHERE id = ? AND credited = 1", (payment,)))
        change_database(observed, "billing", "CREATE TRIGGER refused_credit BEFORE INSERT ON command WHEN NEW.id LIKE 'refund-failed-%' "
                                             "BEGIN SELECT RAISE(ABORT, 'refused'); END")
        STRIPE.refund_status = "failed"
        observed.operator("payment", "refund", payment, "20", "--workspace", workspace, "--reason", "test")

    def end(self, observed):
        STRIPE.refund_status = "succeeded"
        change_database(observed, "billing", "DROP TRIGGER refused_credit")


class Disputed(Fault):
    """a customer disputes a payment, and the evidence is due tomorrow"""
    alerts = ("DisputeNeedsEvidence", "DisputeEvidenceDue")

    def begin(self, observed):
        workspace, _ = new_customer(observed, "disputed")
        page = start_payment(observed, workspace)
        STRIPE.pay(page)
        wait_for_state(observed, workspace, "succeeded")
        self.dispute = STRIPE.dispute(page["payment_intent"], 86_400)

    def end(self, observed):
        self.dispute["status"] = "won"
        STRIPE.tell(self.dispute, kind="charge.dispute.closed")


class Restored(Fault):
    """the database was restored, and nobody reconciles"""
    alerts = ("ReloadsWait",)

    def begin(self, observed):
        change_database(observed, "billing", "INSERT INTO payment_restore (id, restored_us, lost_since_us) VALUES (1, 1, 1)")

    def end(self, observed):
        change_database(observed, "billing", "DELETE FROM payment_restore")


class Reloads(Fault):
    """a saved card is declined; another workspace has no card"""
    alerts = ("ReloadDeclined", "ReloadPaused")

    def begin(self, observed):
        def switch_on(workspace):
            observed.operator("reload", "set", "--workspace", workspace, "--on", "--threshold", "10", "--amount", "10", "--ceiling", "10")

        new_customer(observed, "reload-without-card")
        switch_on("reload-without-card")
        new_customer(observed, "reload-declined")
        observed.operator("payment", "setup", "--workspace", "reload-declined")
        STRIPE.pay(cluster.wait_for("a page for the card", 10, lambda: page_of("reload-declined")))
        cluster.wait_for("a saved card", 20, lambda: change_database(
            observed, "billing", "SELECT id FROM payment_method WHERE workspace = ?", ("reload-declined",)))
        STRIPE.declines = True
        switch_on("reload-declined")
        wait_for_state(observed, "reload-declined", "declined")

    def end(self, observed):
        STRIPE.declines = False


def age_notices(observed):
    """Pretends that they have been waiting for four days."""
    change_database(observed, "billing", "UPDATE alert_outbox SET created_us = created_us - 345600000000, next_us = 0 WHERE state = 1")


class NoticeWaits(Fault):
    """the mail server of notices is down, until they are given up"""
    alerts = ("NoticesWait",)

    def begin(self, observed):
        workspace, _ = new_customer(observed, "notice-waits")
        observed.operator("alert", "set", "--workspace", workspace, "--low-balance", "100", "--email", "ann@example.test")

    def end(self, observed):
        age_notices(observed)


class NoticeGivenUp(Fault):
    """the mail server of notices is down, and a notice is four days old"""
    alerts = ("NoticesGivenUp",)

    def begin(self, observed):
        workspace, _ = new_customer(observed, "notice-given-up")
        observed.operator("alert", "set", "--workspace", workspace, "--low-balance", "100", "--email", "ann@example.test")
        cluster.wait_for("a notice", 20, lambda: change_database(observed, "billing", "SELECT id FROM alert_outbox WHERE state = 1"))
        age_notices(observed)


FAULTS = (BadSignatures, ProviderFails, AnotherAmount, CreditRefused, RefundRefused, Reloads, NoticeWaits, NoticeGivenUp)
