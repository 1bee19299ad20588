from __future__ import annotations

import ottla
from ottla.client.admin.scram_users import ScramDeletion, ScramUpsertion

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"


def test_several_changes_of_a_user_are_made_one_after_the_other(
    admin: ottla.Admin, name: str
) -> None:
    both = [ScramUpsertion(name, "secret", SHA_256), ScramUpsertion(name, "secret", SHA_512)]
    assert admin.alter_user_scram_credentials(both).all() == {name: None}
    assert admin.describe_user_scram_credentials([name])[name].keys() == {SHA_256, SHA_512}  # type: ignore[union-attr]
    outcomes = admin.alter_user_scram_credentials(
        [ScramDeletion(name, SHA_256), ScramDeletion(name, SHA_256), ScramDeletion(name, SHA_512)]
    )
    assert outcomes.failed.keys() == {name}, "the second of them"
    assert admin.describe_user_scram_credentials([name])[name].keys() == {SHA_512}  # type: ignore[union-attr]
