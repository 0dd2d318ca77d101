"""Webhooks: addresses that events are posted to."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory import webhooks
from models.keys import ADMIN
from schemas import webhooks as schema

blueprint = ApiBlueprint("webhooks", "Addresses that events are posted to; docs/events.md has the events.", own=False)

_BAD_URL = {422: "The address can't be used, or something else is wrong."}


@blueprint.get("/webhooks", list_of=schema.Webhook, scope=ADMIN)
def list_webhooks(caller: Caller) -> Any:
    """List webhooks, each with its last deliveries"""
    return {"items": webhooks.list_webhooks(current_engine(), caller)}


@blueprint.post(
    "/webhooks",
    body=schema.WebhookCreate,
    returns=schema.WebhookMade,
    status=201,
    errors={409: "The server has no ENCRYPTION_KEY, or there are ten already. Nothing was stored.", **_BAD_URL},
)
def create_webhook(caller: Caller, body: dict[str, Any]) -> Any:
    """Make a webhook for the events of a person or, without a `user_id`, of the whole tenant

    It gets what happens from now on, each event at least once, those of one person in order. The answer has the secret
    that deliveries are signed with. A receiver that fails is tried again, for three days; then the webhook is disabled.
    """
    return webhooks.create(current_engine(), caller, **body)


@blueprint.patch(
    "/webhooks/<int64:webhook_id>",
    body=schema.WebhookChange(partial=True),
    returns=schema.Webhook,
    errors=_BAD_URL,
)
def change_webhook(caller: Caller, body: dict[str, Any], webhook_id: int) -> Any:
    """Change, disable or enable a webhook

    A change also has what failed tried again now.
    """
    return webhooks.change(current_engine(), caller, webhook_id, body)


@blueprint.post(
    "/webhooks/<int64:webhook_id>/rotate",
    body=schema.WebhookRotate,
    returns=schema.WebhookMade,
    errors={409: "The server has no ENCRYPTION_KEY. Nothing was stored."},
)
def rotate_webhook(caller: Caller, body: dict[str, Any], webhook_id: int) -> Any:
    """Give a webhook a new secret

    The answer has it. Until `overlap_hours` are over, the header `webhook-signature` has two signatures, the new
    secret's and the former one's, as Standard Webhooks defines it: a receiver that knows either of them goes on.
    """
    return webhooks.rotate(current_engine(), caller, webhook_id, **body)


@blueprint.delete("/webhooks/<int64:webhook_id>", status=204)
def delete_webhook(caller: Caller, webhook_id: int) -> None:
    """Delete a webhook, with what waits for it"""
    webhooks.remove(current_engine(), caller, webhook_id)


@blueprint.post("/webhooks/<int64:webhook_id>/test", returns=schema.Delivery, slow=True)
def test_webhook(caller: Caller, webhook_id: int) -> Any:
    """Post an event of the type `webhook.test`, and see how it went"""
    return webhooks.send_test(current_engine(), caller, webhook_id)
