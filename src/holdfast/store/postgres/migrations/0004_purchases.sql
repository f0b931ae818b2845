-- Plans that somebody wants to pay for.

CREATE TABLE purchases (
    account      text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    version      bigint NOT NULL,
    changed_at   bigint NOT NULL,
    plan         text COLLATE "C" NOT NULL,
    price_cents  bigint NOT NULL,
    currency     text COLLATE "C" NOT NULL,
    days         bigint NOT NULL,
    provider     text COLLATE "C" NOT NULL,
    order_id     text COLLATE "C" NOT NULL,
    checkout_url text COLLATE "C" NOT NULL,
    state        text COLLATE "C" NOT NULL CHECK (state IN ('created', 'completed', 'failed')),
    capture_id   text COLLATE "C",
    created_at   bigint NOT NULL,
    expires_at   bigint NOT NULL,
    completed_at bigint,
    PRIMARY KEY (account, id),
    CHECK ((state = 'completed') = (capture_id IS NOT NULL))
);
-- Whatever a program tries, one payment pays for one purchase, in all accounts together.
CREATE UNIQUE INDEX purchases_one_capture ON purchases (capture_id) WHERE capture_id IS NOT NULL;
