CREATE FUNCTION public.holdfast_events_never_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'events never change'; END $$;
CREATE FUNCTION public.holdfast_events_stay() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM removed LEFT JOIN event_counters USING (account) WHERE removed.seq > coalesce(floor, 0)
    ) THEN
        RAISE EXCEPTION 'events are removed by retention alone';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION public.holdfast_events_stay_whole() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'events are removed by retention alone'; END $$;
CREATE FUNCTION public.holdfast_expect(touched bigint, meant bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF touched <> meant THEN
        RAISE EXCEPTION 'touched % rows, meant %', touched, meant USING ERRCODE = 'serialization_failure';
    END IF;
END $$;
CREATE FUNCTION public.holdfast_now() RETURNS bigint
    LANGUAGE sql
    AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;
CREATE FUNCTION public.holdfast_tasks_final() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'a finished task never changes its state'; END $$;
CREATE TABLE public.accounts (
    account text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    changed_at bigint NOT NULL,
    created_at bigint NOT NULL,
    require_lease_id boolean NOT NULL,
    plan text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    plan_expires_at bigint,
    cycle_anchor bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.answers (
    account text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    fingerprint text NOT NULL COLLATE pg_catalog."C",
    status bigint NOT NULL,
    body text NOT NULL COLLATE pg_catalog."C",
    answered_at bigint NOT NULL
);
CREATE TABLE public.badges (
    id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    account text NOT NULL COLLATE pg_catalog."C",
    principal text NOT NULL COLLATE pg_catalog."C",
    key_hash text NOT NULL COLLATE pg_catalog."C",
    made_at bigint NOT NULL,
    seen_at bigint NOT NULL
);
CREATE TABLE public.budgets (
    subject text NOT NULL COLLATE pg_catalog."C",
    class text NOT NULL COLLATE pg_catalog."C",
    started_at bigint NOT NULL,
    used bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.deliveries (
    account text NOT NULL COLLATE pg_catalog."C",
    hook text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    subject text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    attempts bigint NOT NULL,
    next_at bigint NOT NULL,
    claims bigint NOT NULL,
    claimed_until bigint,
    status bigint,
    error text COLLATE pg_catalog."C",
    settled_at bigint,
    CONSTRAINT deliveries_check CHECK (((state = 'pending'::text) = (settled_at IS NULL))),
    CONSTRAINT deliveries_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text])))
)
WITH (fillfactor='70');
CREATE TABLE public.event_counters (
    account text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    floor bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.events (
    account text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    kind text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    actor text NOT NULL COLLATE pg_catalog."C",
    request_id text NOT NULL COLLATE pg_catalog."C",
    data text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    traceparent text DEFAULT ''::text NOT NULL
);
CREATE SEQUENCE public.fencing_tokens
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.key_uses (
    account text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    used_at bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.leases (
    account text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    changed_at bigint NOT NULL,
    kind text COLLATE pg_catalog."C",
    holder text COLLATE pg_catalog."C",
    owner text COLLATE pg_catalog."C",
    principal text COLLATE pg_catalog."C",
    proof text COLLATE pg_catalog."C",
    token bigint NOT NULL,
    ttl bigint NOT NULL,
    claimed_at bigint,
    expires_at bigint,
    metadata text COLLATE pg_catalog."C",
    session text COLLATE pg_catalog."C",
    ephemeral boolean NOT NULL,
    delay bigint NOT NULL,
    available_at bigint,
    note text COLLATE pg_catalog."C",
    checkpoint text COLLATE pg_catalog."C",
    progress text COLLATE pg_catalog."C",
    acl text COLLATE pg_catalog."C",
    ended text COLLATE pg_catalog."C",
    ended_checkpoint text COLLATE pg_catalog."C"
);
CREATE TABLE public.principals (
    account text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    changed_at bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL COLLATE pg_catalog."C",
    key_hash text COLLATE pg_catalog."C",
    scopes text NOT NULL COLLATE pg_catalog."C",
    namespace text COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    revoked_at bigint,
    shown text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    prefix text COLLATE pg_catalog."C",
    expires_at bigint,
    old_key_hash text COLLATE pg_catalog."C",
    old_until bigint,
    listed_hash text COLLATE pg_catalog."C"
);
CREATE TABLE public.purchases (
    account text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    changed_at bigint NOT NULL,
    plan text NOT NULL COLLATE pg_catalog."C",
    price_cents bigint NOT NULL,
    currency text NOT NULL COLLATE pg_catalog."C",
    days bigint NOT NULL,
    provider text NOT NULL COLLATE pg_catalog."C",
    order_id text NOT NULL COLLATE pg_catalog."C",
    checkout_url text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    capture_id text COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    completed_at bigint,
    CONSTRAINT purchases_check CHECK (((state = 'completed'::text) = (capture_id IS NOT NULL))),
    CONSTRAINT purchases_state_check CHECK ((state = ANY (ARRAY['created'::text, 'completed'::text, 'failed'::text])))
);
CREATE TABLE public.schema_version (
    number integer NOT NULL
);
CREATE TABLE public.sessions (
    account text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    changed_at bigint NOT NULL,
    principal text NOT NULL COLLATE pg_catalog."C",
    ttl bigint NOT NULL,
    opened_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    ended_at bigint,
    ended_how text COLLATE pg_catalog."C",
    name text COLLATE pg_catalog."C",
    secret text COLLATE pg_catalog."C",
    proof text COLLATE pg_catalog."C",
    token bigint DEFAULT 0 NOT NULL,
    generation bigint DEFAULT 0 NOT NULL,
    lane boolean DEFAULT false NOT NULL,
    turn bigint,
    last_action text COLLATE pg_catalog."C",
    next_action text COLLATE pg_catalog."C",
    context_hash text COLLATE pg_catalog."C",
    memory_ref text COLLATE pg_catalog."C",
    context text COLLATE pg_catalog."C",
    context_version bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.state (
    id integer NOT NULL,
    alive_at bigint,
    clean boolean NOT NULL,
    CONSTRAINT state_id_check CHECK ((id = 1))
);
CREATE TABLE public.task_counts (
    account text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    total bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.tasks (
    account text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    changed_at bigint NOT NULL,
    type text NOT NULL COLLATE pg_catalog."C",
    payload text NOT NULL COLLATE pg_catalog."C",
    priority bigint NOT NULL,
    max_attempts bigint NOT NULL,
    lease_duration bigint NOT NULL,
    created_at bigint NOT NULL,
    unique_key text COLLATE pg_catalog."C",
    tag text COLLATE pg_catalog."C",
    created_by text COLLATE pg_catalog."C",
    reviewed_by text COLLATE pg_catalog."C",
    source text COLLATE pg_catalog."C",
    backoff text COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    ready boolean NOT NULL,
    scheduled_at bigint,
    place bigint NOT NULL,
    attempt_count bigint DEFAULT 0 NOT NULL,
    attempt bigint DEFAULT 0 NOT NULL,
    worker text COLLATE pg_catalog."C",
    principal text COLLATE pg_catalog."C",
    session text COLLATE pg_catalog."C",
    proof text COLLATE pg_catalog."C",
    token bigint DEFAULT 0 NOT NULL,
    claimed_at bigint,
    expires_at bigint,
    cancel_requested boolean DEFAULT false NOT NULL,
    result text COLLATE pg_catalog."C",
    output_id text COLLATE pg_catalog."C",
    failure_reason text COLLATE pg_catalog."C",
    dead_cause text COLLATE pg_catalog."C",
    resolved_at bigint,
    ended text COLLATE pg_catalog."C",
    ended_checkpoint text COLLATE pg_catalog."C",
    note text COLLATE pg_catalog."C",
    checkpoint text COLLATE pg_catalog."C",
    progress text COLLATE pg_catalog."C",
    traceparent text,
    cancel_reason text,
    CONSTRAINT tasks_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'claimed'::text, 'completed'::text, 'dead_letter'::text, 'cancelled'::text])))
);
CREATE TABLE public.usage (
    account text NOT NULL COLLATE pg_catalog."C",
    cycle bigint NOT NULL,
    created bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE public.webhook_cursors (
    account text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL
);
CREATE TABLE public.webhooks (
    account text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    changed_at bigint NOT NULL,
    principal text NOT NULL COLLATE pg_catalog."C",
    family text NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL COLLATE pg_catalog."C",
    events text NOT NULL COLLATE pg_catalog."C",
    subject text COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    reason text COLLATE pg_catalog."C",
    secret text COLLATE pg_catalog."C",
    old_secret text COLLATE pg_catalog."C",
    old_until bigint,
    created_at bigint NOT NULL,
    CONSTRAINT webhooks_family_check CHECK ((family = ANY (ARRAY['standard'::text, 'octostore'::text]))),
    CONSTRAINT webhooks_state_check CHECK ((state = ANY (ARRAY['active'::text, 'paused'::text, 'disabled'::text])))
);
INSERT INTO public.accounts VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'acct_01M7HE60SDFJN3EZ2JS23GQBGY', 2, 1794807894843054, 1794807890750283, false, 'pro', 1797399894843054, 1794807894843054);
INSERT INTO public.answers VALUES ('default', 'claim-1', '427127f8a212efa34554fe9969f4c6fa2f8077a35fdf338d98d6c6981cd813cf', 200, '{"status":"claimed","job_id":"once","owner":"agent","metadata":null,"claimed_at":"2026-11-16T05:44:49.407926Z","expires_at":"2026-11-16T06:44:49.407926Z","expires_in_seconds":3600,"note":null,"progress":null,"session_id":null,"lease_id":"03540293-58e3-4968-94c0-2760b6c0ae06","token":6,"ttl_seconds":3600,"heartbeat_every_seconds":1200,"previous":null,"agent_contract":{"version":"1","retryable":false,"next_actions":[{"action":"heartbeat_job","available":true,"recommended":true,"description":"Renew while you work, at the advised pace.","method":"POST","endpoint":"/v1/jobs/once/heartbeat"},{"action":"release_job","available":true,"recommended":false,"description":"When done or giving up; leave a note for the next owner.","method":"POST","endpoint":"/v1/jobs/once/release"}],"lease_valid":true,"lease_expires_in_seconds":3600,"recommended_heartbeat_interval_seconds":1200}}', 1794807889407926);
INSERT INTO public.answers VALUES ('default', 'create-1', 'a431272c6dde6e209acf0fbb27f1b4a324455ec68b6c491d4ee9f0f6952e7697', 201, '{"id":"tsk_01M7HE60EX09Q9TRYC8N39N3CB","type":"build","status":"pending","payload":{"name":"once"},"result":null,"priority":0,"maxAttempts":3,"attemptCount":0,"scheduledAt":null,"leaseDurationSeconds":300,"leaseExpiresAt":null,"createdAt":"2026-11-16T05:44:50.401Z","updatedAt":"2026-11-16T05:44:50.401Z","failureReason":null,"outputId":null,"claimedBy":null,"agent_contract":{"version":"1","retryable":false,"next_actions":[{"action":"claim_task","available":true,"recommended":true,"description":"Take the next task of a type.","method":"POST","endpoint":"/v1/tasks/claim"}]}}', 1794807890401449);
INSERT INTO public.badges VALUES ('064b7a95069f6bb0a211026125006bc6a41645dbe59378b9fc234f8c699dd1ad', 'invitation', 'default', '236a4861-041c-582a-bdac-5f5f143c2bc5', '2d73c4cc4a4447db12cd2387067f5fafb36d870592e4af13d36ecceb9c4c7b0e', 1794807890722455, 1794807890722455);
INSERT INTO public.budgets VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'mutation', 1794807894534687, 60);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 19, 'lease:expired', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.454085Z","data":{"seq":19,"subject":"lease:expired","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.454085Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_5a2aa19a034059a92e3136adfcd16508","data":{"version":1,"changed_at":"2026-11-16T05:44:49.454085Z","kind":"job","owner":"gone","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":7,"ttl":1000000,"claimed_at":"2026-11-16T05:44:49.454085Z","expires_at":"2026-11-16T05:44:50.454085Z"}}}', 1794807890267661, 'delivered', 1, 1794807890267661, 1, NULL, 200, NULL, 1794807890404750);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 18, 'lease:once', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.407926Z","data":{"seq":18,"subject":"lease:once","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.407926Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_9242981ef9886b9cdf0142845b793c21","data":{"version":1,"changed_at":"2026-11-16T05:44:49.407926Z","kind":"job","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":6,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:49.407926Z","expires_at":"2026-11-16T06:44:49.407926Z"}}}', 1794807890267661, 'delivered', 1, 1794807890267661, 1, NULL, 200, NULL, 1794807890404750);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 16, 'lease:held', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.318426Z","data":{"seq":16,"subject":"lease:held","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.318426Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_2d4b0c91b410cb9dde73aaad5bc5072a","data":{"version":1,"changed_at":"2026-11-16T05:44:49.318426Z","kind":"job","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":5,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:49.318426Z","expires_at":"2026-11-16T06:44:49.318426Z","metadata":{"branch":"main"}}}}', 1794807889417541, 'delivered', 1, 1794807889417541, 1, NULL, 200, NULL, 1794807890285276);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 16, 'lease:held', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.318426Z","data":{"seq":16,"subject":"lease:held","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.318426Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_2d4b0c91b410cb9dde73aaad5bc5072a","data":{"version":1,"changed_at":"2026-11-16T05:44:49.318426Z","kind":"job","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":5,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:49.318426Z","expires_at":"2026-11-16T06:44:49.318426Z","metadata":{"branch":"main"}}}}', 1794807889417541, 'dead', 3, 1794807890985557, 3, NULL, 500, 'status 500', 1794807891117566);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 57, 'lease:last', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:54.930717Z","data":{"seq":57,"subject":"lease:last","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:54.930717Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_7ccb45028c4e6158d0cce79ec768ac63","data":{"version":1,"changed_at":"2026-11-16T05:44:54.930717Z","kind":"job","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":22,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:54.930717Z","expires_at":"2026-11-16T06:44:54.930717Z"}}}', 1794807894972877, 'pending', 1, 1794812037366484, 1, NULL, 500, 'status 500', NULL);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 20, 'lease:released', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.586305Z","data":{"seq":20,"subject":"lease:released","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.586305Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_15ff9cbf1210580140655f52aebf0dc0","data":{"version":1,"changed_at":"2026-11-16T05:44:49.586305Z","kind":"job","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":8,"ttl":120000000,"claimed_at":"2026-11-16T05:44:49.586305Z","expires_at":"2026-11-16T05:46:49.586305Z"}}}', 1794807890267661, 'delivered', 1, 1794807890267661, 1, NULL, 200, NULL, 1794807890404750);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 26, 'lease:delayed', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:50.055113Z","data":{"seq":26,"subject":"lease:delayed","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:50.055113Z","actor":"c276cced-329b-5c04-a514-1d573b984322","request_id":"req_c4e62e6de518bdac3749b9fc277ea7e2","data":{"version":1,"changed_at":"2026-11-16T05:44:50.055113Z","kind":"lock","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","token":11,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:50.055113Z","expires_at":"2026-11-16T06:44:50.055113Z","delay":30000000}}}', 1794807890267661, 'delivered', 1, 1794807890267661, 1, NULL, 200, NULL, 1794807890404750);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 22, 'lease:guarded', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.818929Z","data":{"seq":22,"subject":"lease:guarded","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.818929Z","actor":"c276cced-329b-5c04-a514-1d573b984322","request_id":"req_69bf10bacbff8f50a07f642596b98612","data":{"version":1,"changed_at":"2026-11-16T05:44:49.818929Z","kind":"lock","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","token":9,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:49.818929Z","expires_at":"2026-11-16T06:44:49.818929Z","metadata":"alice''s"}}}', 1794807890267661, 'delivered', 1, 1794807890267661, 1, NULL, 200, NULL, 1794807890404750);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 24, 'lease:resting', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.922543Z","data":{"seq":24,"subject":"lease:resting","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.922543Z","actor":"c276cced-329b-5c04-a514-1d573b984322","request_id":"req_cf8426d3127656a789b942340d215326","data":{"version":1,"changed_at":"2026-11-16T05:44:49.922543Z","kind":"lock","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","token":10,"ttl":60000000,"claimed_at":"2026-11-16T05:44:49.922543Z","expires_at":"2026-11-16T05:45:49.922543Z","delay":30000000}}}', 1794807890267661, 'delivered', 1, 1794807890267661, 1, NULL, 200, NULL, 1794807890404750);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 18, 'lease:once', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.407926Z","data":{"seq":18,"subject":"lease:once","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.407926Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_9242981ef9886b9cdf0142845b793c21","data":{"version":1,"changed_at":"2026-11-16T05:44:49.407926Z","kind":"job","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":6,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:49.407926Z","expires_at":"2026-11-16T06:44:49.407926Z"}}}', 1794807890267661, 'dead', 3, 1794807891012685, 3, NULL, 500, 'status 500', 1794807891117566);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 26, 'lease:delayed', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:50.055113Z","data":{"seq":26,"subject":"lease:delayed","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:50.055113Z","actor":"c276cced-329b-5c04-a514-1d573b984322","request_id":"req_c4e62e6de518bdac3749b9fc277ea7e2","data":{"version":1,"changed_at":"2026-11-16T05:44:50.055113Z","kind":"lock","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","token":11,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:50.055113Z","expires_at":"2026-11-16T06:44:50.055113Z","delay":30000000}}}', 1794807890267661, 'dead', 3, 1794807891049719, 3, NULL, 500, 'status 500', 1794807891225483);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 19, 'lease:expired', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.454085Z","data":{"seq":19,"subject":"lease:expired","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.454085Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_5a2aa19a034059a92e3136adfcd16508","data":{"version":1,"changed_at":"2026-11-16T05:44:49.454085Z","kind":"job","owner":"gone","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":7,"ttl":1000000,"claimed_at":"2026-11-16T05:44:49.454085Z","expires_at":"2026-11-16T05:44:50.454085Z"}}}', 1794807890267661, 'dead', 3, 1794807891113670, 3, NULL, 500, 'status 500', 1794807891225483);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 22, 'lease:guarded', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.818929Z","data":{"seq":22,"subject":"lease:guarded","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.818929Z","actor":"c276cced-329b-5c04-a514-1d573b984322","request_id":"req_69bf10bacbff8f50a07f642596b98612","data":{"version":1,"changed_at":"2026-11-16T05:44:49.818929Z","kind":"lock","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","token":9,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:49.818929Z","expires_at":"2026-11-16T06:44:49.818929Z","metadata":"alice''s"}}}', 1794807890267661, 'dead', 3, 1794807891139220, 3, NULL, 500, 'status 500', 1794807891280720);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE64V2P3X007BNHZ1Y9W15', 57, 'lease:last', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:54.930717Z","data":{"seq":57,"subject":"lease:last","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:54.930717Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_7ccb45028c4e6158d0cce79ec768ac63","data":{"version":1,"changed_at":"2026-11-16T05:44:54.930717Z","kind":"job","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":22,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:54.930717Z","expires_at":"2026-11-16T06:44:54.930717Z"}}}', 1794807894972877, 'pending', 1, 1794811650926575, 1, NULL, 500, 'status 500', NULL);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 24, 'lease:resting', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.922543Z","data":{"seq":24,"subject":"lease:resting","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.922543Z","actor":"c276cced-329b-5c04-a514-1d573b984322","request_id":"req_cf8426d3127656a789b942340d215326","data":{"version":1,"changed_at":"2026-11-16T05:44:49.922543Z","kind":"lock","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","token":10,"ttl":60000000,"claimed_at":"2026-11-16T05:44:49.922543Z","expires_at":"2026-11-16T05:45:49.922543Z","delay":30000000}}}', 1794807890267661, 'dead', 3, 1794807891024044, 3, NULL, 500, 'status 500', 1794807891225483);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 20, 'lease:released', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:49.586305Z","data":{"seq":20,"subject":"lease:released","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:49.586305Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_15ff9cbf1210580140655f52aebf0dc0","data":{"version":1,"changed_at":"2026-11-16T05:44:49.586305Z","kind":"job","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":8,"ttl":120000000,"claimed_at":"2026-11-16T05:44:49.586305Z","expires_at":"2026-11-16T05:46:49.586305Z"}}}', 1794807890267661, 'dead', 3, 1794807891007567, 3, NULL, 500, 'status 500', 1794807891117566);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 32, 'lease:ephemeral', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:50.289748Z","data":{"seq":32,"subject":"lease:ephemeral","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:50.289748Z","actor":"c276cced-329b-5c04-a514-1d573b984322","request_id":"req_a3b0c706e41389fe9f992faf94075112","data":{"version":1,"changed_at":"2026-11-16T05:44:50.289748Z","kind":"lock","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","token":15,"ttl":300000000,"claimed_at":"2026-11-16T05:44:50.289748Z","expires_at":"2026-11-16T05:49:50.289748Z","session":"786ddcda-7b36-4a1a-b412-00ecb9d113d5","ephemeral":true}}}', 1794807890382142, 'delivered', 1, 1794807890382142, 1, NULL, 200, NULL, 1794807890494857);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 30, 'lease:of-the-session', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:50.256232Z","data":{"seq":30,"subject":"lease:of-the-session","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:50.256232Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_d6fe63f318e0c78587970165de8c6905","data":{"version":1,"changed_at":"2026-11-16T05:44:50.256232Z","kind":"job","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":14,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:50.256232Z","expires_at":"2026-11-16T06:44:50.256232Z","session":"71c2cf99-93ef-520a-9e8a-7ed4a792ad3f","ephemeral":true}}}', 1794807890382142, 'delivered', 1, 1794807890382142, 1, NULL, 200, NULL, 1794807890494857);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 32, 'lease:ephemeral', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:50.289748Z","data":{"seq":32,"subject":"lease:ephemeral","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:50.289748Z","actor":"c276cced-329b-5c04-a514-1d573b984322","request_id":"req_a3b0c706e41389fe9f992faf94075112","data":{"version":1,"changed_at":"2026-11-16T05:44:50.289748Z","kind":"lock","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","token":15,"ttl":300000000,"claimed_at":"2026-11-16T05:44:50.289748Z","expires_at":"2026-11-16T05:49:50.289748Z","session":"786ddcda-7b36-4a1a-b412-00ecb9d113d5","ephemeral":true}}}', 1794807890382142, 'dead', 3, 1794807891198843, 3, NULL, 500, 'status 500', 1794807891280720);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 30, 'lease:of-the-session', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:50.256232Z","data":{"seq":30,"subject":"lease:of-the-session","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:50.256232Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_d6fe63f318e0c78587970165de8c6905","data":{"version":1,"changed_at":"2026-11-16T05:44:50.256232Z","kind":"job","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":14,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:50.256232Z","expires_at":"2026-11-16T06:44:50.256232Z","session":"71c2cf99-93ef-520a-9e8a-7ed4a792ad3f","ephemeral":true}}}', 1794807890382142, 'dead', 3, 1794807891183118, 3, NULL, 500, 'status 500', 1794807891280720);
INSERT INTO public.deliveries VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 57, 'lease:last', 'lease.claimed', '{"type":"lease.claimed","timestamp":"2026-11-16T05:44:54.930717Z","data":{"seq":57,"subject":"lease:last","version":1,"kind":"lease.claimed","at":"2026-11-16T05:44:54.930717Z","actor":"236a4861-041c-582a-bdac-5f5f143c2bc5","request_id":"req_7ccb45028c4e6158d0cce79ec768ac63","data":{"version":1,"changed_at":"2026-11-16T05:44:54.930717Z","kind":"job","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","token":22,"ttl":3600000000,"claimed_at":"2026-11-16T05:44:54.930717Z","expires_at":"2026-11-16T06:44:54.930717Z"}}}', 1794807894972877, 'delivered', 1, 1794807894972877, 1, NULL, 200, NULL, 1794807895334460);
INSERT INTO public.event_counters VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 7, 0);
INSERT INTO public.event_counters VALUES ('default', 57, 9);
INSERT INTO public.events VALUES ('default', 'lease:before-the-cut', 2, 'lease.snapshot', 1794807885676891, 'retention', '', '{"account":"default","id":"before-the-cut","version":2,"changed_at":1794807882111128,"kind":"job","holder":"76ace167-c71b-4c3e-998f-4a9532569f79","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","proof":"24cd1e68fb8608734ce0edcf75a58a22344b74747c7f0862d6148d5231fb261f","token":1,"ttl":3600000000,"claimed_at":1794807882111128,"expires_at":1794811482111128,"metadata":null,"session":null,"ephemeral":false,"delay":0,"available_at":null,"note":null,"checkpoint":null,"progress":null,"acl":null,"ended":null,"ended_checkpoint":null}', 10, '');
INSERT INTO public.events VALUES ('default', 'lease:cut', 7, 'lease.snapshot', 1794807885676891, 'retention', '', '{"account":"default","id":"cut","version":7,"changed_at":1794807882318328,"kind":null,"holder":null,"owner":null,"principal":null,"proof":null,"token":4,"ttl":0,"claimed_at":null,"expires_at":null,"metadata":null,"session":null,"ephemeral":false,"delay":0,"available_at":null,"note":null,"checkpoint":null,"progress":null,"acl":null,"ended":{"owner":"agent","how":"released","at":1794807882318328,"kind":"job","proof":"55457c92c315935ff57fba301be6911e20d54174a1ef3c32ca864e3236237015","claimed_at":1794807882306161,"principal":"236a4861-041c-582a-bdac-5f5f143c2bc5"},"ended_checkpoint":null}', 11, '');
INSERT INTO public.events VALUES ('default', 'principal:236a4861-041c-582a-bdac-5f5f143c2bc5', 2, 'principal.snapshot', 1794807885676891, 'retention', '', '{"account":"default","id":"236a4861-041c-582a-bdac-5f5f143c2bc5","version":2,"changed_at":1794807881861582,"name":"root","source":"root","key_hash":{"sha256":"7106993cac15223db4cd2266a32463aab64d775b9c95e1aef72be5c3b9fd17ea","size":64},"scopes":"admin jobs tasks","namespace":null,"created_at":1794807881861582,"revoked_at":null,"shown":"","prefix":null,"expires_at":null,"old_key_hash":null,"old_until":null,"listed_hash":null}', 12, '');
INSERT INTO public.events VALUES ('default', 'principal:c276cced-329b-5c04-a514-1d573b984322', 2, 'principal.snapshot', 1794807885676891, 'retention', '', '{"account":"default","id":"c276cced-329b-5c04-a514-1d573b984322","version":2,"changed_at":1794807881861582,"name":"alice","source":"static","key_hash":{"sha256":"fd61412043504b602a976f8d2e59d58a179820849be01076b584ccbf8e6da628","size":64},"scopes":"jobs tasks","namespace":null,"created_at":1794807881861582,"revoked_at":null,"shown":"","prefix":null,"expires_at":null,"old_key_hash":null,"old_until":null,"listed_hash":null}', 13, '');
INSERT INTO public.events VALUES ('default', 'webhook:whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 1, 'webhook.created', 1794807889193559, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_ba82a89816ba733e89c496430d72ae9a', '{"version":1,"changed_at":1794807889193559,"principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","url":{"sha256":"25849e407221da9ee003402fb371929d4f1a49bd2ff05435d5f6d9d5cc9b495f","size":26},"events":["lease.claimed"],"secret":"****","created_at":1794807889193559}', 14, '');
INSERT INTO public.events VALUES ('default', 'webhook:whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 1, 'webhook.created', 1794807889288480, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_6a994ec7abd6e94bebff9178660210bf', '{"version":1,"changed_at":1794807889288480,"principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","url":{"sha256":"e49aa2ef9316947c28f78a7aab50e6933efd88362a68c6c971075b709b146729","size":26},"events":["lease.claimed"],"secret":"****","created_at":1794807889288480}', 15, '');
INSERT INTO public.events VALUES ('default', 'lease:held', 1, 'lease.claimed', 1794807889318426, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_2d4b0c91b410cb9dde73aaad5bc5072a', '{"version":1,"changed_at":1794807889318426,"kind":"job","holder":"b3e58571-f4fc-4334-b9cf-ca5ac8ec6430","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","proof":"1c259d54c4dcf5b92f768402d46d7f6d72a45d0b2cbb4412b343190b9b21a1d6","token":5,"ttl":3600000000,"claimed_at":1794807889318426,"expires_at":1794811489318426,"metadata":{"branch":"main"}}', 16, '');
INSERT INTO public.events VALUES ('default', 'lease:held', 2, 'lease.renewed', 1794807889368418, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_de88384bfdd8e622e9ed768bc7cde5bf', '{"version":2,"changed_at":1794807889368418,"expires_at":1794811489368418,"note":"half done","checkpoint":{"sha256":"f2c76473acac2fa2146cd9615b918e8ae33033c5a78dd320338b04ac6fa438ab","size":10}}', 17, '');
INSERT INTO public.events VALUES ('default', 'lease:once', 1, 'lease.claimed', 1794807889407926, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_9242981ef9886b9cdf0142845b793c21', '{"version":1,"changed_at":1794807889407926,"kind":"job","holder":"58459945-9a44-4bc6-8dcd-be3b8d8c38f4","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","proof":"ac6b7b6c407db49fe6fc5f9ba6fef74efe29e75ce2bf9454cbcd13257dbb21af","token":6,"ttl":3600000000,"claimed_at":1794807889407926,"expires_at":1794811489407926}', 18, '');
INSERT INTO public.events VALUES ('default', 'lease:expired', 1, 'lease.claimed', 1794807889454085, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_5a2aa19a034059a92e3136adfcd16508', '{"version":1,"changed_at":1794807889454085,"kind":"job","holder":"4e7b1abe-147a-4cba-a99f-505dd6c5d271","owner":"gone","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","proof":"dea44e265c6744613b93b0b553698799c6d092bed838d715a12e156ee869f776","token":7,"ttl":1000000,"claimed_at":1794807889454085,"expires_at":1794807890454085}', 19, '');
INSERT INTO public.events VALUES ('default', 'lease:released', 1, 'lease.claimed', 1794807889586305, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_15ff9cbf1210580140655f52aebf0dc0', '{"version":1,"changed_at":1794807889586305,"kind":"job","holder":"781bba20-4fab-46d9-bf23-6f534d9bb286","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","proof":"4ff6b56ff552f3e4a18b4cdacab95e2d50f3bdabe179f44ae15bb9262c9a4ced","token":8,"ttl":120000000,"claimed_at":1794807889586305,"expires_at":1794808009586305}', 20, '');
INSERT INTO public.events VALUES ('default', 'lease:released', 2, 'lease.released', 1794807889698209, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_f043d187780153021866d2cda1af2a77', '{"version":2,"changed_at":1794807889698209,"kind":null,"holder":null,"owner":null,"principal":null,"proof":null,"ttl":0,"claimed_at":null,"expires_at":null,"ended":{"owner":"agent","how":"released","at":1794807889698209,"kind":"job","proof":"4ff6b56ff552f3e4a18b4cdacab95e2d50f3bdabe179f44ae15bb9262c9a4ced","claimed_at":1794807889586305,"principal":"236a4861-041c-582a-bdac-5f5f143c2bc5"}}', 21, '');
INSERT INTO public.events VALUES ('default', 'lease:guarded', 1, 'lease.claimed', 1794807889818929, 'c276cced-329b-5c04-a514-1d573b984322', 'req_69bf10bacbff8f50a07f642596b98612', '{"version":1,"changed_at":1794807889818929,"kind":"lock","holder":"c276cced-329b-5c04-a514-1d573b984322","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","proof":"159361e1563023415d240d4d2bbc79e4f3734d569d3b01e766b32e651224bd41","token":9,"ttl":3600000000,"claimed_at":1794807889818929,"expires_at":1794811489818929,"metadata":"alice''s"}', 22, '');
INSERT INTO public.events VALUES ('default', 'lease:guarded', 2, 'lease.acl_set', 1794807889877787, 'c276cced-329b-5c04-a514-1d573b984322', 'req_35fc37f49452223bbb29fcabd43779f0', '{"version":2,"changed_at":1794807889877787,"acl":["user:alice"]}', 23, '');
INSERT INTO public.events VALUES ('default', 'lease:resting', 1, 'lease.claimed', 1794807889922543, 'c276cced-329b-5c04-a514-1d573b984322', 'req_cf8426d3127656a789b942340d215326', '{"version":1,"changed_at":1794807889922543,"kind":"lock","holder":"c276cced-329b-5c04-a514-1d573b984322","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","proof":"82090e094d5509c6450532c03a27c1e49e4fb89aa0308d39164a5e884ae3a851","token":10,"ttl":60000000,"claimed_at":1794807889922543,"expires_at":1794807949922543,"delay":30000000}', 24, '');
INSERT INTO public.events VALUES ('default', 'lease:resting', 2, 'lease.released', 1794807889998295, 'c276cced-329b-5c04-a514-1d573b984322', 'req_618e0b974d8d5669031a8c1aac7ba822', '{"version":2,"changed_at":1794807889998295,"kind":null,"holder":null,"owner":null,"principal":null,"proof":null,"ttl":0,"claimed_at":null,"expires_at":null,"delay":0,"available_at":1794807919998295,"ended":{"owner":"alice","how":"released","at":1794807889998295,"kind":"lock","proof":"82090e094d5509c6450532c03a27c1e49e4fb89aa0308d39164a5e884ae3a851","claimed_at":1794807889922543,"principal":"c276cced-329b-5c04-a514-1d573b984322","by":"c276cced-329b-5c04-a514-1d573b984322"}}', 25, '');
INSERT INTO public.events VALUES ('default', 'lease:__election/the-room', 1, 'lease.claimed', 1794807890067083, 'anonymous', 'req_616f01e259c9b473384eba7779590f10', '{"version":1,"changed_at":1794807890067083,"kind":"election","holder":"e3fa11d3-22eb-4a60-91a6-c2445703449a","owner":"first","principal":"e3fa11d3-22eb-4a60-91a6-c2445703449a","proof":"26f9961fa40c248ed041cff28f614e5dd6376ee236408f7999510fa0f33f094c","token":12,"ttl":300000000,"claimed_at":1794807890067083,"expires_at":1794808190067083}', 27, '');
INSERT INTO public.events VALUES ('default', 'session:71c2cf99-93ef-520a-9e8a-7ed4a792ad3f', 2, 'session.context', 1794807890244548, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_61ee3f771840b32efcf3559293de482d', '{"version":2,"changed_at":1794807890244548,"expires_at":1794811490244548,"context":{"sha256":"603082b5e546d6dc0a2599f44e0b041e7ee29a394e1da3ad23f46cd0fd42eede","size":25},"context_version":1}', 29, '');
INSERT INTO public.events VALUES ('default', 'session:786ddcda-7b36-4a1a-b412-00ecb9d113d5', 1, 'session.opened', 1794807890280862, 'c276cced-329b-5c04-a514-1d573b984322', 'req_aca57f237b7213b31a9802289e6a88f4', '{"version":1,"changed_at":1794807890280862,"principal":"c276cced-329b-5c04-a514-1d573b984322","ttl":300000000,"opened_at":1794807890280862,"expires_at":1794808190280862}', 31, '');
INSERT INTO public.events VALUES ('default', 'session:7d8ec856-4bb9-5c39-844e-5ce84e8bc243', 1, 'session.opened', 1794807890307574, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_b018a625dca8da0cca865ebd40f4a668', '{"version":1,"changed_at":1794807890307574,"principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","ttl":10000000,"opened_at":1794807890307574,"expires_at":1794807900307574,"name":"short","secret":{"sha256":"d060dd6c7e2cafe6b5e66cd4d14aa002b433ca776791863e9d5b14d87a398262","size":64},"proof":"0d3eafa98ddef429edc36eb60a6207229cf2f0873f630c5ae8c7f089e8177b70","token":16,"generation":1}', 33, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60DN3QCMHFNPDJDQ4652', 1, 'task.created', 1794807890374161, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_fd77d2ac000aaa2161d173ed719b0473', '{"version":1,"changed_at":1794807890374161,"type":"build","payload":{"sha256":"4970e9f240dd0f2cd7dae7beb9e30ae64d706c11eab034fd5a42131b6c24f68e","size":15},"priority":5,"created_at":1794807890374161,"ready":true,"place":1794807890374161}', 35, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60EX09Q9TRYC8N39N3CB', 1, 'task.created', 1794807890401449, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_f45f2628b8939426503a316c6c427782', '{"version":1,"changed_at":1794807890401449,"type":"build","payload":{"sha256":"26149f2189b848d04a959a5ca5efd8a49e08e27a22f801758903b6c578fa8190","size":15},"created_at":1794807890401449,"ready":true,"place":1794807890401449}', 37, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60F4HMSRXB5QXM5Q7FQS', 2, 'task.claimed', 1794807890429913, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_596d331eedfc29c7684f16976baa1f05', '{"version":2,"changed_at":1794807890429913,"state":"claimed","ready":false,"attempt_count":1,"attempt":1,"worker":"worker","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","proof":"16cb5f70ba3a5b1747c39f6b54092d00e958fcebad97f45496f4d0a1a93d5148","token":17,"claimed_at":1794807890429913,"expires_at":1794811490429913}', 39, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60G1NQ44YQF0H98Z9B6H', 2, 'task.claimed', 1794807890440079, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_39851f70010c7fab7916e988bf3c29ed', '{"version":2,"changed_at":1794807890440079,"state":"claimed","ready":false,"attempt_count":1,"attempt":1,"worker":"worker","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","proof":"51d7fddc7891e4ffefdf5617f554acc82b28df1a133447d8387ba0d0b2b94fdf","token":18,"claimed_at":1794807890440079,"expires_at":1794808190440079}', 41, '');
INSERT INTO public.events VALUES ('default', 'lease:expired', 2, 'lease.expired', 1794807890479656, 'sweep', '', '{"version":2,"changed_at":1794807890479656,"kind":null,"holder":null,"owner":null,"principal":null,"proof":null,"ttl":0,"claimed_at":null,"expires_at":null,"ended":{"owner":"gone","how":"expired","at":1794807890479656,"kind":"job","proof":"dea44e265c6744613b93b0b553698799c6d092bed838d715a12e156ee869f776","claimed_at":1794807889454085,"principal":"236a4861-041c-582a-bdac-5f5f143c2bc5"}}', 42, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60HVDZY785CCRR3VFC5G', 1, 'task.created', 1794807890491957, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_b6b50943aecc0ad6b0439434cc952490', '{"version":1,"changed_at":1794807890491957,"type":"build","payload":{"sha256":"0a3d2a4aad431e7b452627a83af416208b05965bf36be1ea56d06e5c6c4551ec","size":15},"created_at":1794807890491957,"ready":true,"place":1794807890491957}', 44, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60HVDZY785CCRR3VFC5G', 3, 'task.dead_lettered', 1794807890543733, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_db4ceadec13287be32aaab5e043deff7', '{"version":3,"changed_at":1794807890543733,"state":"dead_letter","worker":null,"principal":null,"proof":null,"claimed_at":null,"expires_at":null,"failure_reason":"broken","dead_cause":"permanent","ended":{"worker":"worker","outcome":"failed","at":1794807890543733,"attempt":1,"proof":"63ac61d5ebe81b36cb1a90ee96515759ae2d0198ae65fe49a0cfa682e10bbae7","reason":"broken"}}', 46, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60KNR5T98CPAX161FWQA', 2, 'task.claimed', 1794807890574673, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_cf2a4b4a3aafe591fa5537ace0a9b70d', '{"version":2,"changed_at":1794807890574673,"state":"claimed","ready":false,"attempt_count":1,"attempt":1,"worker":"worker","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","proof":"ee2d85371c6fc11aba14005463e898e5a66ff6f69e1d419a374763bfa43798b5","token":20,"claimed_at":1794807890574673,"expires_at":1794808190574673}', 48, '');
INSERT INTO public.events VALUES ('default', 'principal:168401e0-2dd2-4603-b3a7-8f94fc50ed29', 1, 'principal.created', 1794807890634206, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_9ab28c2af41f79cf68fbdc8b02e9cc4c', '{"version":1,"changed_at":1794807890634206,"name":"worker","key_hash":{"sha256":"12e8899fc330041590bbaed76eb85801a643611a80360a2f3d0bc40e0d215f88","size":64},"scopes":"jobs tasks read","created_at":1794807890634206,"shown":"hf_live_5mDL…5R8v"}', 52, '');
INSERT INTO public.events VALUES ('default', 'principal:305c5a0c-0a15-464b-bbf3-6b8c86462e07', 1, 'principal.created', 1794807890676852, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_3cb08dc6b13ff2c4879fc49ff6d3f804', '{"version":1,"changed_at":1794807890676852,"name":"revoked","key_hash":{"sha256":"94fd6bd1062a55e70246ab6629989a21829957920505f7ebb610043c456148ba","size":64},"scopes":"read","created_at":1794807890676852,"shown":"hf_live_9ofj…Cbpy"}', 54, '');
INSERT INTO public.events VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'account:acct_01M7HE60SDFJN3EZ2JS23GQBGY', 1, 'account.registered', 1794807890750283, 'anonymous', 'req_834b067c122123ae826acda3eac4a016', '{"version":1,"changed_at":1794807890750283,"created_at":1794807890750283,"cycle_anchor":1794807890750283}', 1, '');
INSERT INTO public.events VALUES ('default', 'lease:delayed', 1, 'lease.claimed', 1794807890055113, 'c276cced-329b-5c04-a514-1d573b984322', 'req_c4e62e6de518bdac3749b9fc277ea7e2', '{"version":1,"changed_at":1794807890055113,"kind":"lock","holder":"c276cced-329b-5c04-a514-1d573b984322","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","proof":"dd19f5a6bd2287cc83c3c013b166c997a5b8085f8c7878dff703048da4ea5367","token":11,"ttl":3600000000,"claimed_at":1794807890055113,"expires_at":1794811490055113,"delay":30000000}', 26, '');
INSERT INTO public.events VALUES ('default', 'session:71c2cf99-93ef-520a-9e8a-7ed4a792ad3f', 1, 'session.opened', 1794807890180631, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_c74ac0124c8db547acda6c036bddcdc3', '{"version":1,"changed_at":1794807890180631,"principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","ttl":3600000000,"opened_at":1794807890180631,"expires_at":1794811490180631,"name":"agent-7","secret":{"sha256":"7cd7c51222cea26de0b4120c9f3b2fc857184cf3b174dca6defc4ee730d77db8","size":64},"proof":"9d4ef97ca4e045046b1de45d1c339e7fef0401e21d32e700c4a57a24c839b406","token":13,"generation":1}', 28, '');
INSERT INTO public.events VALUES ('default', 'lease:of-the-session', 1, 'lease.claimed', 1794807890256232, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_d6fe63f318e0c78587970165de8c6905', '{"version":1,"changed_at":1794807890256232,"kind":"job","holder":"4302238f-18b7-4e8f-ae94-98151c755649","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","proof":"cb41e0665aa096c591266de506bd24f1e83dbbbd7ba636eb16dd8995ca69b00c","token":14,"ttl":3600000000,"claimed_at":1794807890256232,"expires_at":1794811490256232,"session":"71c2cf99-93ef-520a-9e8a-7ed4a792ad3f","ephemeral":true}', 30, '');
INSERT INTO public.events VALUES ('default', 'lease:ephemeral', 1, 'lease.claimed', 1794807890289748, 'c276cced-329b-5c04-a514-1d573b984322', 'req_a3b0c706e41389fe9f992faf94075112', '{"version":1,"changed_at":1794807890289748,"kind":"lock","holder":"786ddcda-7b36-4a1a-b412-00ecb9d113d5","owner":"alice","principal":"c276cced-329b-5c04-a514-1d573b984322","proof":"5f5075abba14568dfea78be6ed6adb19be2232b4a7e0534d9346ce0222af21d5","token":15,"ttl":300000000,"claimed_at":1794807890289748,"expires_at":1794808190289748,"session":"786ddcda-7b36-4a1a-b412-00ecb9d113d5","ephemeral":true}', 32, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60C816FBZG9W6NFVBS3P', 1, 'task.created', 1794807890317938, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_5da99bbbcabcf79d6633de0454966485', '{"version":1,"changed_at":1794807890317938,"type":"build","payload":{"sha256":"a58b288c2e40d54e1d02705b14e8113a70b344a6face2024fd1f5fc0a2516716","size":16},"created_at":1794807890317938,"unique_key":"one","tag":"upgrade","ready":true,"place":1794807890317938}', 34, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60EB2M73NEKETHFQJCT4', 1, 'task.created', 1794807890382331, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_74b19653f0562f5a84fbd3ede76969eb', '{"version":1,"changed_at":1794807890382331,"type":"build","payload":{"sha256":"31b7929dc0cdcaaee424871301a1070b3d8569034cd39d4bb735690f21ae4d3e","size":20},"created_at":1794807890382331,"scheduled_at":1794894290000000,"place":1794894350000000}', 36, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60F4HMSRXB5QXM5Q7FQS', 1, 'task.created', 1794807890421615, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_572953484ca4dc851f7577279c15dbab', '{"version":1,"changed_at":1794807890421615,"type":"build","payload":{"sha256":"ae3ab6328e3ae565cbcf645288671f686c1a0843c6ca51d5eebe6b5cda3a8ff7","size":18},"lease_duration":3600000000,"created_at":1794807890421615,"ready":true,"place":1794807890421615}', 38, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60G1NQ44YQF0H98Z9B6H', 1, 'task.created', 1794807890433677, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_69e466cb5c42e1bfae329594ab675095', '{"version":1,"changed_at":1794807890433677,"type":"build","payload":{"sha256":"5d0ea373d1acad5fefbf8b5a72b00d426c8a0448f95c2cb3520f019d7988f344","size":20},"created_at":1794807890433677,"ready":true,"place":1794807890433677}', 40, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60G1NQ44YQF0H98Z9B6H', 3, 'task.completed', 1794807890469878, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_1e899cd6e2b8c9d3452470f293fd6f79', '{"version":3,"changed_at":1794807890469878,"state":"completed","principal":null,"proof":null,"claimed_at":null,"expires_at":null,"result":{"sha256":"3d5e54be84218853c5097a66a26750fd2b9ece6618e5e49de65416bf82b43f5d","size":14},"ended":{"worker":"worker","outcome":"completed","at":1794807890469878,"attempt":1,"proof":"51d7fddc7891e4ffefdf5617f554acc82b28df1a133447d8387ba0d0b2b94fdf"}}', 43, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60HVDZY785CCRR3VFC5G', 2, 'task.claimed', 1794807890495363, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_05d876cf6eeec5acd473481367871c9b', '{"version":2,"changed_at":1794807890495363,"state":"claimed","ready":false,"attempt_count":1,"attempt":1,"worker":"worker","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","proof":"63ac61d5ebe81b36cb1a90ee96515759ae2d0198ae65fe49a0cfa682e10bbae7","token":19,"claimed_at":1794807890495363,"expires_at":1794808190495363}', 45, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60KNR5T98CPAX161FWQA', 1, 'task.created', 1794807890551942, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_8eed4ccb7f459ea11a2fbcbb01a79076', '{"version":1,"changed_at":1794807890551942,"type":"build","payload":{"sha256":"5ce1c9d96c3bd86e91ca16746294db117e1739419ef8ffcc7aa5d549a548b2a5","size":18},"created_at":1794807890551942,"ready":true,"place":1794807890551942}', 47, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60KNR5T98CPAX161FWQA', 3, 'task.failed', 1794807890600063, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_7dafe5e3e2b00afaa35a0ee2b0a2c66b', '{"version":3,"changed_at":1794807890600063,"state":"pending","ready":true,"worker":null,"principal":null,"proof":null,"claimed_at":null,"expires_at":null,"failure_reason":"flaky","ended":{"worker":"worker","outcome":"failed","at":1794807890600063,"attempt":1,"proof":"ee2d85371c6fc11aba14005463e898e5a66ff6f69e1d419a374763bfa43798b5","reason":"flaky"}}', 49, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60NNE90CGW0BNG8Z0NAS', 1, 'task.created', 1794807890613696, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_31d01d24020772a0a249e152282c3d5c', '{"version":1,"changed_at":1794807890613696,"type":"build","payload":{"sha256":"20c1f3547ad2fdb56ea1f51ec3efa8c2698da220a7d00be7491550cc1ff59c45","size":20},"created_at":1794807890613696,"ready":true,"place":1794807890613696}', 50, '');
INSERT INTO public.events VALUES ('default', 'task:tsk_01M7HE60NNE90CGW0BNG8Z0NAS', 2, 'task.cancelled', 1794807890624432, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_92310d56f23c6c9addc26f135b10011b', '{"version":2,"changed_at":1794807890624432,"state":"cancelled","ready":false}', 51, '');
INSERT INTO public.events VALUES ('default', 'principal:b75dce03-4bc2-4fbe-a367-6c0f951c2f5a', 1, 'principal.created', 1794807890647797, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_1197650de8ca493182f5359855c6270f', '{"version":1,"changed_at":1794807890647797,"name":"narrow","key_hash":{"sha256":"11733fb700170dfaa43ecc3d6683cfe822d7e3016d8c4d8673ffe9d77ff8a8e6","size":64},"scopes":"jobs read","created_at":1794807890647797,"shown":"hf_live_8KeA…3yom","prefix":"held"}', 53, '');
INSERT INTO public.events VALUES ('default', 'principal:305c5a0c-0a15-464b-bbf3-6b8c86462e07', 2, 'principal.revoked', 1794807890710814, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_58c83a8c50f575e1a90eef385074c243', '{"version":2,"changed_at":1794807890710814,"revoked_at":1794807890710814}', 55, '');
INSERT INTO public.events VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'task:tsk_01M7HE60V4MSPX9AKXK0DW88JN', 1, 'task.created', 1794807890790999, '68717da5-62a8-472a-9226-ba1828a7faf1', 'req_0d3023ba8a888df3283f8d080879a3f7', '{"version":1,"changed_at":1794807890790999,"type":"mail","created_at":1794807890790999,"ready":true,"place":1794807890790999}', 3, '');
INSERT INTO public.events VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'principal:68717da5-62a8-472a-9226-ba1828a7faf1', 1, 'principal.created', 1794807890750283, 'anonymous', 'req_834b067c122123ae826acda3eac4a016', '{"version":1,"changed_at":1794807890750283,"name":"first","key_hash":{"sha256":"6dbd18879a3f7b010bf89cba76c2e69ae92932b1d4e3794cbb0b864e19990ea2","size":64},"scopes":"admin jobs tasks","created_at":1794807890750283,"shown":"hf_live_YVPM…Nciq"}', 2, '');
INSERT INTO public.events VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'lease:held', 1, 'lease.claimed', 1794807890815261, '68717da5-62a8-472a-9226-ba1828a7faf1', 'req_58129123541fbd9e611263cdfa96c29c', '{"version":1,"changed_at":1794807890815261,"kind":"job","holder":"872b7b5b-7c67-40a5-884f-2a22bcecca28","owner":"other","principal":"68717da5-62a8-472a-9226-ba1828a7faf1","proof":"938820bf3cc371bf63a9a6db08cf9cf06c66076d791ab7e29c32948f696529f6","token":21,"ttl":3600000000,"claimed_at":1794807890815261,"expires_at":1794811490815261}', 4, '');
INSERT INTO public.events VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'purchase:pur_01M7HE64GDE3CNBDRQR60ZPD9P', 1, 'purchase.begun', 1794807894710346, '68717da5-62a8-472a-9226-ba1828a7faf1', 'req_f2c1c3f15033ebd4e319402bb530d074', '{"version":1,"changed_at":1794807894710346,"plan":"pro","price_cents":2499,"days":30,"provider":"paypal","order_id":"ORDER000000000002","checkout_url":"http://127.0.0.1:35643/checkoutnow?token=ORDER000000000002","created_at":1794807894710346,"expires_at":1794818694710346}', 5, '');
INSERT INTO public.events VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'account:acct_01M7HE60SDFJN3EZ2JS23GQBGY', 2, 'account.upgraded', 1794807894843054, '68717da5-62a8-472a-9226-ba1828a7faf1', 'req_1d50748ea50e01a7000ae6cd76b5ed64', '{"version":2,"changed_at":1794807894843054,"plan":"pro","plan_expires_at":1797399894843054,"cycle_anchor":1794807894843054}', 6, '');
INSERT INTO public.events VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'purchase:pur_01M7HE64GDE3CNBDRQR60ZPD9P', 2, 'purchase.completed', 1794807894843054, '68717da5-62a8-472a-9226-ba1828a7faf1', 'req_1d50748ea50e01a7000ae6cd76b5ed64', '{"version":2,"changed_at":1794807894843054,"state":"completed","capture_id":"CAPTURE000000000003","completed_at":1794807894843054}', 7, '');
INSERT INTO public.events VALUES ('default', 'webhook:whk_01M7HE64V2P3X007BNHZ1Y9W15', 1, 'webhook.created', 1794807894888279, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_12108c73b046a433eca4424b3e5e66fe', '{"version":1,"changed_at":1794807894888279,"principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","url":{"sha256":"f5fb7ce47120604de207f6176df7205290ed34af1857e2b90bd2af4b1f44d1fd","size":28},"events":["lease.claimed"],"secret":"****","created_at":1794807894888279}', 56, '');
INSERT INTO public.events VALUES ('default', 'lease:last', 1, 'lease.claimed', 1794807894930717, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'req_7ccb45028c4e6158d0cce79ec768ac63', '{"version":1,"changed_at":1794807894930717,"kind":"job","holder":"faeb63d8-4bd1-47c4-ab2a-08f28bb4d77a","owner":"agent","principal":"236a4861-041c-582a-bdac-5f5f143c2bc5","proof":"62092712c5c273e609be3cefd441b7292ebf90991723c5326ba32cbcd620c284","token":22,"ttl":3600000000,"claimed_at":1794807894930717,"expires_at":1794811494930717}', 57, '');
INSERT INTO public.key_uses VALUES ('default', 'c276cced-329b-5c04-a514-1d573b984322', 1794807889814248);
INSERT INTO public.key_uses VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', '68717da5-62a8-472a-9226-ba1828a7faf1', 1794807894519490);
INSERT INTO public.key_uses VALUES ('default', '236a4861-041c-582a-bdac-5f5f143c2bc5', 1794807894881754);
INSERT INTO public.leases VALUES ('default', 'before-the-cut', 2, 1794807882111128, 'job', '76ace167-c71b-4c3e-998f-4a9532569f79', 'agent', '236a4861-041c-582a-bdac-5f5f143c2bc5', '24cd1e68fb8608734ce0edcf75a58a22344b74747c7f0862d6148d5231fb261f', 1, 3600000000, 1794807882111128, 1794811482111128, NULL, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.leases VALUES ('default', 'cut', 7, 1794807882318328, NULL, NULL, NULL, NULL, NULL, 4, 0, NULL, NULL, NULL, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, '{"owner":"agent","how":"released","at":1794807882318328,"kind":"job","proof":"55457c92c315935ff57fba301be6911e20d54174a1ef3c32ca864e3236237015","claimed_at":1794807882306161,"principal":"236a4861-041c-582a-bdac-5f5f143c2bc5"}', NULL);
INSERT INTO public.leases VALUES ('default', 'held', 2, 1794807889368418, 'job', 'b3e58571-f4fc-4334-b9cf-ca5ac8ec6430', 'agent', '236a4861-041c-582a-bdac-5f5f143c2bc5', '1c259d54c4dcf5b92f768402d46d7f6d72a45d0b2cbb4412b343190b9b21a1d6', 5, 3600000000, 1794807889318426, 1794811489368418, '{"branch":"main"}', NULL, false, 0, NULL, 'half done', '{"step":3}', NULL, NULL, NULL, NULL);
INSERT INTO public.leases VALUES ('default', 'once', 1, 1794807889407926, 'job', '58459945-9a44-4bc6-8dcd-be3b8d8c38f4', 'agent', '236a4861-041c-582a-bdac-5f5f143c2bc5', 'ac6b7b6c407db49fe6fc5f9ba6fef74efe29e75ce2bf9454cbcd13257dbb21af', 6, 3600000000, 1794807889407926, 1794811489407926, NULL, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.leases VALUES ('default', 'released', 2, 1794807889698209, NULL, NULL, NULL, NULL, NULL, 8, 0, NULL, NULL, NULL, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, '{"owner":"agent","how":"released","at":1794807889698209,"kind":"job","proof":"4ff6b56ff552f3e4a18b4cdacab95e2d50f3bdabe179f44ae15bb9262c9a4ced","claimed_at":1794807889586305,"principal":"236a4861-041c-582a-bdac-5f5f143c2bc5"}', NULL);
INSERT INTO public.leases VALUES ('default', 'guarded', 2, 1794807889877787, 'lock', 'c276cced-329b-5c04-a514-1d573b984322', 'alice', 'c276cced-329b-5c04-a514-1d573b984322', '159361e1563023415d240d4d2bbc79e4f3734d569d3b01e766b32e651224bd41', 9, 3600000000, 1794807889818929, 1794811489818929, '"alice''s"', NULL, false, 0, NULL, NULL, NULL, NULL, '["user:alice"]', NULL, NULL);
INSERT INTO public.leases VALUES ('default', 'resting', 2, 1794807889998295, NULL, NULL, NULL, NULL, NULL, 10, 0, NULL, NULL, NULL, NULL, false, 0, 1794807919998295, NULL, NULL, NULL, NULL, '{"owner":"alice","how":"released","at":1794807889998295,"kind":"lock","proof":"82090e094d5509c6450532c03a27c1e49e4fb89aa0308d39164a5e884ae3a851","claimed_at":1794807889922543,"principal":"c276cced-329b-5c04-a514-1d573b984322","by":"c276cced-329b-5c04-a514-1d573b984322"}', NULL);
INSERT INTO public.leases VALUES ('default', 'delayed', 1, 1794807890055113, 'lock', 'c276cced-329b-5c04-a514-1d573b984322', 'alice', 'c276cced-329b-5c04-a514-1d573b984322', 'dd19f5a6bd2287cc83c3c013b166c997a5b8085f8c7878dff703048da4ea5367', 11, 3600000000, 1794807890055113, 1794811490055113, NULL, NULL, false, 30000000, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.leases VALUES ('default', '__election/the-room', 1, 1794807890067083, 'election', 'e3fa11d3-22eb-4a60-91a6-c2445703449a', 'first', 'e3fa11d3-22eb-4a60-91a6-c2445703449a', '26f9961fa40c248ed041cff28f614e5dd6376ee236408f7999510fa0f33f094c', 12, 300000000, 1794807890067083, 1794808190067083, NULL, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.leases VALUES ('default', 'of-the-session', 1, 1794807890256232, 'job', '4302238f-18b7-4e8f-ae94-98151c755649', 'agent', '236a4861-041c-582a-bdac-5f5f143c2bc5', 'cb41e0665aa096c591266de506bd24f1e83dbbbd7ba636eb16dd8995ca69b00c', 14, 3600000000, 1794807890256232, 1794811490256232, NULL, '71c2cf99-93ef-520a-9e8a-7ed4a792ad3f', true, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.leases VALUES ('default', 'ephemeral', 1, 1794807890289748, 'lock', '786ddcda-7b36-4a1a-b412-00ecb9d113d5', 'alice', 'c276cced-329b-5c04-a514-1d573b984322', '5f5075abba14568dfea78be6ed6adb19be2232b4a7e0534d9346ce0222af21d5', 15, 300000000, 1794807890289748, 1794808190289748, NULL, '786ddcda-7b36-4a1a-b412-00ecb9d113d5', true, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.leases VALUES ('default', 'expired', 2, 1794807890479656, NULL, NULL, NULL, NULL, NULL, 7, 0, NULL, NULL, NULL, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, '{"owner":"gone","how":"expired","at":1794807890479656,"kind":"job","proof":"dea44e265c6744613b93b0b553698799c6d092bed838d715a12e156ee869f776","claimed_at":1794807889454085,"principal":"236a4861-041c-582a-bdac-5f5f143c2bc5"}', NULL);
INSERT INTO public.leases VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'held', 1, 1794807890815261, 'job', '872b7b5b-7c67-40a5-884f-2a22bcecca28', 'other', '68717da5-62a8-472a-9226-ba1828a7faf1', '938820bf3cc371bf63a9a6db08cf9cf06c66076d791ab7e29c32948f696529f6', 21, 3600000000, 1794807890815261, 1794811490815261, NULL, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.leases VALUES ('default', 'last', 1, 1794807894930717, 'job', 'faeb63d8-4bd1-47c4-ab2a-08f28bb4d77a', 'agent', '236a4861-041c-582a-bdac-5f5f143c2bc5', '62092712c5c273e609be3cefd441b7292ebf90991723c5326ba32cbcd620c284', 22, 3600000000, 1794807894930717, 1794811494930717, NULL, NULL, false, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.principals VALUES ('default', '236a4861-041c-582a-bdac-5f5f143c2bc5', 2, 1794807881861582, 'root', 'root', '2d73c4cc4a4447db12cd2387067f5fafb36d870592e4af13d36ecceb9c4c7b0e', 'admin jobs tasks', NULL, 1794807881861582, NULL, '', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.principals VALUES ('default', 'c276cced-329b-5c04-a514-1d573b984322', 2, 1794807881861582, 'alice', 'static', 'f18388eb658f6606799306651e205b17e648021f7c1b82c7c3f02251a0a9368c', 'jobs tasks', NULL, 1794807881861582, NULL, '', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.principals VALUES ('default', '168401e0-2dd2-4603-b3a7-8f94fc50ed29', 1, 1794807890634206, 'worker', 'issued', '45051927cf482d40a954e83b2d2df0d4c618d27719cece61f9a389f62b108dd1', 'jobs tasks read', NULL, 1794807890634206, NULL, 'hf_live_5mDL…5R8v', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.principals VALUES ('default', 'b75dce03-4bc2-4fbe-a367-6c0f951c2f5a', 1, 1794807890647797, 'narrow', 'issued', '8e6a853649ed027f5c4023d2f2df258f487036ec7659517fc930acf056d20389', 'jobs read', NULL, 1794807890647797, NULL, 'hf_live_8KeA…3yom', 'held', NULL, NULL, NULL, NULL);
INSERT INTO public.principals VALUES ('default', '305c5a0c-0a15-464b-bbf3-6b8c86462e07', 2, 1794807890710814, 'revoked', 'issued', 'a2f08235a30bfa46851e9258c2f806b51e70c5a6a8ff9b1a951f6b89f4bb0015', 'read', NULL, 1794807890676852, 1794807890710814, 'hf_live_9ofj…Cbpy', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.principals VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', '68717da5-62a8-472a-9226-ba1828a7faf1', 1, 1794807890750283, 'first', 'issued', '675a7e63030817ee3f1d90fe594617d7cc7021f2cb9e7796da59d95e4cac26c5', 'admin jobs tasks', NULL, 1794807890750283, NULL, 'hf_live_YVPM…Nciq', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.purchases VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'pur_01M7HE64GDE3CNBDRQR60ZPD9P', 2, 1794807894843054, 'pro', 2499, 'USD', 30, 'paypal', 'ORDER000000000002', 'http://127.0.0.1:35643/checkoutnow?token=ORDER000000000002', 'completed', 'CAPTURE000000000003', 1794807894710346, 1794818694710346, 1794807894843054);
INSERT INTO public.schema_version VALUES (1);
INSERT INTO public.schema_version VALUES (2);
INSERT INTO public.schema_version VALUES (3);
INSERT INTO public.schema_version VALUES (4);
INSERT INTO public.schema_version VALUES (5);
INSERT INTO public.schema_version VALUES (6);
INSERT INTO public.schema_version VALUES (7);
INSERT INTO public.schema_version VALUES (8);
INSERT INTO public.sessions VALUES ('default', '71c2cf99-93ef-520a-9e8a-7ed4a792ad3f', 2, 1794807890244548, '236a4861-041c-582a-bdac-5f5f143c2bc5', 3600000000, 1794807890180631, 1794811490244548, NULL, NULL, 'agent-7', '450d6168cfca720ef0a806d8accfe2c37dcd531a89fe921cd0133391b0f28273', '9d4ef97ca4e045046b1de45d1c339e7fef0401e21d32e700c4a57a24c839b406', 13, 1, false, NULL, NULL, NULL, NULL, NULL, '{"plan":["read","write"]}', 1);
INSERT INTO public.sessions VALUES ('default', '786ddcda-7b36-4a1a-b412-00ecb9d113d5', 1, 1794807890280862, 'c276cced-329b-5c04-a514-1d573b984322', 300000000, 1794807890280862, 1794808190280862, NULL, NULL, NULL, NULL, NULL, 0, 0, false, NULL, NULL, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.sessions VALUES ('default', '7d8ec856-4bb9-5c39-844e-5ce84e8bc243', 1, 1794807890307574, '236a4861-041c-582a-bdac-5f5f143c2bc5', 10000000, 1794807890307574, 1794807900307574, NULL, NULL, 'short', 'e7feca47ea400b42de3ad6e0f725e9687aa74fdc206973eb4b7383dc111eecf5', '0d3eafa98ddef429edc36eb60a6207229cf2f0873f630c5ae8c7f089e8177b70', 16, 1, false, NULL, NULL, NULL, NULL, NULL, NULL, 0);
INSERT INTO public.state VALUES (1, 1794807895479683, true);
INSERT INTO public.task_counts VALUES ('default', 'build', 'completed', 1);
INSERT INTO public.task_counts VALUES ('default', 'build', 'dead_letter', 1);
INSERT INTO public.task_counts VALUES ('default', 'build', 'claimed', 1);
INSERT INTO public.task_counts VALUES ('default', 'build', 'cancelled', 1);
INSERT INTO public.task_counts VALUES ('default', 'build', 'pending', 5);
INSERT INTO public.task_counts VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'mail', 'pending', 1);
INSERT INTO public.tasks VALUES ('default', 'tsk_01M7HE60C816FBZG9W6NFVBS3P', 1, 1794807890317938, 'build', '{"name":"ready"}', 0, 3, 300000000, 1794807890317938, 'one', 'upgrade', NULL, NULL, NULL, NULL, 'pending', true, NULL, 1794807890317938, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.tasks VALUES ('default', 'tsk_01M7HE60DN3QCMHFNPDJDQ4652', 1, 1794807890374161, 'build', '{"name":"next"}', 5, 3, 300000000, 1794807890374161, NULL, NULL, NULL, NULL, NULL, NULL, 'pending', true, NULL, 1794807890374161, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.tasks VALUES ('default', 'tsk_01M7HE60EB2M73NEKETHFQJCT4', 1, 1794807890382331, 'build', '{"name":"scheduled"}', 0, 3, 300000000, 1794807890382331, NULL, NULL, NULL, NULL, NULL, NULL, 'pending', false, 1794894290000000, 1794894350000000, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.tasks VALUES ('default', 'tsk_01M7HE60EX09Q9TRYC8N39N3CB', 1, 1794807890401449, 'build', '{"name":"once"}', 0, 3, 300000000, 1794807890401449, NULL, NULL, NULL, NULL, NULL, NULL, 'pending', true, NULL, 1794807890401449, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.tasks VALUES ('default', 'tsk_01M7HE60F4HMSRXB5QXM5Q7FQS', 2, 1794807890429913, 'build', '{"name":"claimed"}', 0, 3, 3600000000, 1794807890421615, NULL, NULL, NULL, NULL, NULL, NULL, 'claimed', false, NULL, 1794807890421615, 1, 1, 'worker', '236a4861-041c-582a-bdac-5f5f143c2bc5', NULL, '16cb5f70ba3a5b1747c39f6b54092d00e958fcebad97f45496f4d0a1a93d5148', 17, 1794807890429913, 1794811490429913, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.tasks VALUES ('default', 'tsk_01M7HE60G1NQ44YQF0H98Z9B6H', 3, 1794807890469878, 'build', '{"name":"completed"}', 0, 3, 300000000, 1794807890433677, NULL, NULL, NULL, NULL, NULL, NULL, 'completed', false, NULL, 1794807890433677, 1, 1, 'worker', NULL, NULL, NULL, 18, NULL, NULL, false, '{"built":true}', NULL, NULL, NULL, NULL, '{"worker":"worker","outcome":"completed","at":1794807890469878,"attempt":1,"proof":"51d7fddc7891e4ffefdf5617f554acc82b28df1a133447d8387ba0d0b2b94fdf"}', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.tasks VALUES ('default', 'tsk_01M7HE60HVDZY785CCRR3VFC5G', 3, 1794807890543733, 'build', '{"name":"dead"}', 0, 3, 300000000, 1794807890491957, NULL, NULL, NULL, NULL, NULL, NULL, 'dead_letter', false, NULL, 1794807890491957, 1, 1, NULL, NULL, NULL, NULL, 19, NULL, NULL, false, NULL, NULL, 'broken', 'permanent', NULL, '{"worker":"worker","outcome":"failed","at":1794807890543733,"attempt":1,"proof":"63ac61d5ebe81b36cb1a90ee96515759ae2d0198ae65fe49a0cfa682e10bbae7","reason":"broken"}', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.tasks VALUES ('default', 'tsk_01M7HE60KNR5T98CPAX161FWQA', 3, 1794807890600063, 'build', '{"name":"retried"}', 0, 3, 300000000, 1794807890551942, NULL, NULL, NULL, NULL, NULL, NULL, 'pending', true, NULL, 1794807890551942, 1, 1, NULL, NULL, NULL, NULL, 20, NULL, NULL, false, NULL, NULL, 'flaky', NULL, NULL, '{"worker":"worker","outcome":"failed","at":1794807890600063,"attempt":1,"proof":"ee2d85371c6fc11aba14005463e898e5a66ff6f69e1d419a374763bfa43798b5","reason":"flaky"}', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.tasks VALUES ('default', 'tsk_01M7HE60NNE90CGW0BNG8Z0NAS', 2, 1794807890624432, 'build', '{"name":"cancelled"}', 0, 3, 300000000, 1794807890613696, NULL, NULL, NULL, NULL, NULL, NULL, 'cancelled', false, NULL, 1794807890613696, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.tasks VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 'tsk_01M7HE60V4MSPX9AKXK0DW88JN', 1, 1794807890790999, 'mail', '{}', 0, 3, 300000000, 1794807890790999, NULL, NULL, NULL, NULL, NULL, NULL, 'pending', true, NULL, 1794807890790999, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.usage VALUES ('default', 1793664000000000, 9);
INSERT INTO public.usage VALUES ('acct_01M7HE60SDFJN3EZ2JS23GQBGY', 1794807890750283, 1);
INSERT INTO public.webhook_cursors VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 57);
INSERT INTO public.webhook_cursors VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 57);
INSERT INTO public.webhook_cursors VALUES ('default', 'whk_01M7HE64V2P3X007BNHZ1Y9W15', 57);
INSERT INTO public.webhooks VALUES ('default', 'whk_01M7HE5Z7CH0G3BWCK4YC3P52R', 1, 1794807889193559, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'standard', 'http://127.0.0.1:42693/200', '["lease.claimed"]', NULL, 'active', NULL, 'whsec_SeeYbRYF3nKfCXpkK2PCKLWFkfaOIu2T+iWBQGgHWNw=', NULL, NULL, 1794807889193559);
INSERT INTO public.webhooks VALUES ('default', 'whk_01M7HE5ZB6AAM6N5C5VG2PBQDV', 1, 1794807889288480, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'standard', 'http://127.0.0.1:42693/500', '["lease.claimed"]', NULL, 'active', NULL, 'whsec_Yic6gPA85lhQeQ1kgLioRGqJcAN9i+h5vPFaSCjaUz4=', NULL, NULL, 1794807889288480);
INSERT INTO public.webhooks VALUES ('default', 'whk_01M7HE64V2P3X007BNHZ1Y9W15', 1, 1794807894888279, '236a4861-041c-582a-bdac-5f5f143c2bc5', 'standard', 'http://127.0.0.1:42693/later', '["lease.claimed"]', NULL, 'active', NULL, 'whsec_/GUOHsdp6exxkf80Wi4x2/4o6GyDDoVMQj8zjBBPxT0=', NULL, NULL, 1794807894888279);
SELECT pg_catalog.setval('public.fencing_tokens', 22, true);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (account, id);
ALTER TABLE ONLY public.answers
    ADD CONSTRAINT answers_pkey PRIMARY KEY (account, key);
ALTER TABLE ONLY public.badges
    ADD CONSTRAINT badges_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.budgets
    ADD CONSTRAINT budgets_pkey PRIMARY KEY (subject, class);
ALTER TABLE ONLY public.deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (account, hook, seq);
ALTER TABLE ONLY public.event_counters
    ADD CONSTRAINT event_counters_pkey PRIMARY KEY (account);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (account, seq);
ALTER TABLE ONLY public.key_uses
    ADD CONSTRAINT key_uses_pkey PRIMARY KEY (account, id);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (account, id);
ALTER TABLE ONLY public.principals
    ADD CONSTRAINT principals_pkey PRIMARY KEY (account, id);
ALTER TABLE ONLY public.purchases
    ADD CONSTRAINT purchases_pkey PRIMARY KEY (account, id);
ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (account, id);
ALTER TABLE ONLY public.state
    ADD CONSTRAINT state_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.task_counts
    ADD CONSTRAINT task_counts_pkey PRIMARY KEY (account, type, state);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (account, id);
ALTER TABLE ONLY public.usage
    ADD CONSTRAINT usage_pkey PRIMARY KEY (account);
ALTER TABLE ONLY public.webhook_cursors
    ADD CONSTRAINT webhook_cursors_pkey PRIMARY KEY (account, id);
ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (account, id);
CREATE INDEX answers_by_age ON public.answers USING btree (answered_at);
CREATE INDEX deliveries_by_age ON public.deliveries USING btree (state, settled_at) WHERE (settled_at IS NOT NULL);
CREATE INDEX deliveries_due ON public.deliveries USING btree (next_at) WHERE (state = 'pending'::text);
CREATE INDEX deliveries_in_line ON public.deliveries USING btree (account, hook, subject, seq) WHERE (state = 'pending'::text);
CREATE INDEX deliveries_in_state ON public.deliveries USING btree (account, hook, state, seq);
CREATE UNIQUE INDEX events_of_subject ON public.events USING btree (account, subject, version);
CREATE INDEX leases_due ON public.leases USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX leases_held ON public.leases USING btree (account, id) WHERE (expires_at IS NOT NULL);
CREATE INDEX leases_of_principal ON public.leases USING btree (account, principal, expires_at) WHERE (kind = 'lock'::text);
CREATE INDEX leases_of_session ON public.leases USING btree (account, session) WHERE (session IS NOT NULL);
CREATE INDEX principals_by_key ON public.principals USING btree (key_hash) WHERE (revoked_at IS NULL);
CREATE INDEX principals_by_old_key ON public.principals USING btree (old_key_hash) WHERE ((old_key_hash IS NOT NULL) AND (revoked_at IS NULL));
CREATE UNIQUE INDEX purchases_one_capture ON public.purchases USING btree (capture_id) WHERE (capture_id IS NOT NULL);
CREATE INDEX sessions_due ON public.sessions USING btree (expires_at) WHERE (ended_at IS NULL);
CREATE INDEX tasks_due ON public.tasks USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX tasks_finished ON public.tasks USING btree (account, changed_at) WHERE (state = ANY (ARRAY['completed'::text, 'dead_letter'::text, 'cancelled'::text]));
CREATE INDEX tasks_keyed ON public.tasks USING btree (account, unique_key, id) WHERE (unique_key IS NOT NULL);
CREATE INDEX tasks_listed ON public.tasks USING btree (account, type, state, id);
CREATE INDEX tasks_of_session ON public.tasks USING btree (account, session) WHERE (session IS NOT NULL);
CREATE UNIQUE INDEX tasks_one_live ON public.tasks USING btree (account, unique_key) WHERE ((unique_key IS NOT NULL) AND (state = ANY (ARRAY['pending'::text, 'claimed'::text])));
CREATE INDEX tasks_ready ON public.tasks USING btree (account, type, priority DESC, place, id) WHERE ready;
CREATE INDEX tasks_ready_any ON public.tasks USING btree (account, ((- priority)), place, id) WHERE ready;
CREATE INDEX tasks_ripe ON public.tasks USING btree (account, type, scheduled_at) WHERE ((state = 'pending'::text) AND (NOT ready));
CREATE INDEX tasks_scheduled ON public.tasks USING btree (scheduled_at) WHERE ((state = 'pending'::text) AND (NOT ready));
CREATE INDEX tasks_tagged ON public.tasks USING btree (account, tag, id) WHERE (tag IS NOT NULL);
CREATE INDEX webhooks_active ON public.webhooks USING btree (account, id) WHERE (state = 'active'::text);
CREATE TRIGGER events_never_change BEFORE UPDATE ON public.events FOR EACH STATEMENT EXECUTE FUNCTION public.holdfast_events_never_change();
CREATE TRIGGER events_stay AFTER DELETE ON public.events REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION public.holdfast_events_stay();
CREATE TRIGGER events_stay_whole BEFORE TRUNCATE ON public.events FOR EACH STATEMENT EXECUTE FUNCTION public.holdfast_events_stay_whole();
CREATE TRIGGER tasks_final BEFORE UPDATE OF state ON public.tasks FOR EACH ROW WHEN ((((old.state = ANY (ARRAY['completed'::text, 'cancelled'::text])) AND (new.state <> old.state)) OR ((old.state = 'dead_letter'::text) AND (new.state <> ALL (ARRAY['dead_letter'::text, 'pending'::text])) AND (new.version < (old.version + 2))) OR (new.attempt < old.attempt))) EXECUTE FUNCTION public.holdfast_tasks_final();
