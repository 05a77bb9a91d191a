/*
 * The claim protocol around one key, as a Promela model. docs/model.md says how
 * it is run, within which bounds, and which function of the code each step is.
 *
 * Two original records of the key (a producer's duplicate), the copies that
 * requeues, replays and moves make of them, and two workers that deliver any of
 * them, crash anywhere, and go on after their lease ended. The environment ends
 * leases, fails the store over to its last confirmed write, purges by time, and
 * lets effects land after their worker is gone; an operator resolves and
 * replays.
 *
 * In every reachable state: the effect was applied at most once (IDEM: the sink
 * dedupes), and when all carriers are settled it was applied or stands in the
 * dead letters. Monitor, at the end, says so.
 */

/* The kind of effect. */
#define PROBED 0
#define AMO 1
#define IDEM 2
#ifndef KIND
#define KIND PROBED
#endif

/* Bounds: how often a thing may happen. */
#ifndef ATT
#define ATT 2 /* attempts that the schedule allows */
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef LEASES
#define LEASES 2
#endif
#ifndef CARRIERS
#define CARRIERS 4
#endif
#ifndef LATE
#define LATE 0 /* 1: an effect may land after its attempt is over */
#endif
#ifndef RELEASES
#define RELEASES 0
#endif
#ifndef FAILOVERS
#define FAILOVERS 0
#endif
#ifndef PURGES
#define PURGES 0
#endif
#ifndef REPLAYS
#define REPLAYS 0
#endif
#ifndef MOVE
#define MOVE 0 /* 1: what is held may be moved to a delay topic */
#endif
#ifndef IN_PLACE
#define IN_PLACE 0 /* 1: retries wait in the key's lane instead of in delay topics */
#endif
#ifndef FORGET
#define FORGET 0 /* 1, IDEM: once it has applied, the sink may forget the effect id */
#endif

/* Rules. -DWITHOUT_X takes one away, and the check must then fail. */
#ifdef WITHOUT_QUIET
#define QUIET 0
#else
#define QUIET 1 /* a probe says "not applied" only when nothing can still land */
#endif
#ifdef WITHOUT_PRIOR
#define PRIOR 0
#else
#define PRIOR 1 /* a release puts back what the claim found, doubt included */
#endif
#ifdef WITHOUT_DOUBT
#define DOUBT 0
#else
#define DOUBT 1 /* pending and dead in doubt are not purged by time */
#endif
#ifdef WITHOUT_REOPEN
#define REOPEN 0
#else
#define REOPEN 1 /* dead(n) opens only to an attempt above n, in doubt if it died in doubt; a replay writes nothing */
#endif
#ifdef WITHOUT_CONFIRM
#define CONFIRM 0
#else
#define CONFIRM 1 /* claims, ends and resolutions survive a failover before anything builds on them */
#endif
#ifdef WITHOUT_CARRY
#define CARRY 0
#else
#define CARRY 1 /* a bury says itself whether the key died in doubt */
#endif
#ifdef WITHOUT_STICKY
#define STICKY 0
#else
#define STICKY 1 /* doubt stays in verdict, requeued, pending and dead until done or resolved */
#endif
#ifdef WITHOUT_TOKEN
#define TOKEN 0
#else
#define TOKEN 1 /* requeued keeps the token */
#endif
#ifdef WITHOUT_COPY
#define COPY 0
#else
#define COPY 1 /* requeuing produces the copy again before it hands over */
#endif
#ifdef WITHOUT_RESOLVED
#define RESOLVED 0
#else
#define RESOLVED 1 /* a bury above dead(n) is refused once the doubt is resolved */
#endif
#ifdef WITHOUT_COMPARE
#define COMPARE 0
#else
#define COMPARE 1 /* every transition compares the token */
#endif

/* States of the record. */
#define ABSENT 0
#define PENDING 1
#define REQUEUED 2
#define DONE 3
#define DEAD 4

/* Verdicts. RETRY speaks of the attempt after the record's. */
#define NONE 0
#define RETRY 1
#define GIVEUP 2

/* What a worker does next. The first five hold a claim that nothing was done
 * with yet, so it may be released. */
#define IDLE 0
#define RUN 1
#define PROBE 2
#define PARK 3       /* a doubt that the kind parks */
#define GIVING_UP 4  /* finishes the dead letter of a holder that is gone */
#define REQUEUING 5  /* finishes the retry of a holder that is gone, before it is due */
#define CLAIM 6
#define IN_FLIGHT 7
#define PROBE_OWN 8  /* asks about its own attempt */
#define SEAL 9
#define SAY_RETRY 10
#define PRODUCE 11
#define HAND_OVER 12
#define SAY_DEAD 13
#define PARK_OWN 14
#define DEAD_LETTER 15
#define BURY 16
#define BURY_ABOVE 17 /* a copy above dead(n) that may not open it */
#define SETTLE 18
#define BEGIN 19  /* the next attempt under the same claim */
#define RUN_ON 20 /* RUN, but not the first attempt of its claim */

typedef Record {
	byte state;
	byte token;
	byte attempt;
	byte verdict;
	bool alive; /* the lease has not ended */
	bool doubt
};

typedef Slot {
	byte step;
	byte carrier;
	byte token;
	byte attempt;
	bool doubt;
	Record prior /* what its claim found */
};

Record rec;  /* in the store */
Record safe; /* what the store has after a failover */
Slot w[2], spare;
byte attempt[CARRIERS] = 1;
bool settled[CARRIERS];
byte carriers = 2;
byte top;     /* the highest token ever given */
byte applied; /* effects in the sink, as far as it counts them */
byte dead;    /* dead letters that stand */
byte late;    /* effects on their way whose worker has gone on */
bool forgot;
byte crashes = CRASHES, leases = LEASES, releases = RELEASES, failovers = FAILOVERS, purges = PURGES, replays = REPLAYS;

#define me w[i]
#define other w[1 - i]
#define mine (rec.state == PENDING && (rec.token == me.token || !COMPARE))
#define live (mine && rec.alive)
#define max(a, b) ((a) > (b) -> (a) : (b))
#define in_flight (late > 0 || w[0].step == IN_FLIGHT || w[1].step == IN_FLIGHT)
#define free_carrier (carriers < CARRIERS)

#define put(r, s, t, a, v, l, d) r.state = s; r.token = t; r.attempt = a; r.verdict = v; r.alive = l; r.doubt = d
#define move_record(to, from) put(to, from.state, from.token, from.attempt, from.verdict, from.alive, from.doubt)
#define clear(r) put(r, ABSENT, 0, 0, NONE, false, false)

/* confirm: replicas have the record. After the last failover nobody asks. */
inline confirm() {
	if
	:: failovers && CONFIRM -> move_record(safe, rec)
	:: else
	fi
}

inline lands() { /* an idempotent sink counts an effect id once */
	if
	:: KIND == IDEM && !forgot -> applied = 1
	:: else -> applied++
	fi
}

#define add_carrier(a) attempt[carriers] = a; carriers++

inline claim_again() {
	me.step = CLAIM; me.token = 0; me.attempt = attempt[me.carrier]; me.doubt = false; clear(me.prior)
}
inline to_settle() {
	me.step = SETTLE; me.token = 0; me.attempt = 0; me.doubt = false; clear(me.prior)
}

/* grant writes the pending record of a claim with the worker's attempt. */
inline grant(v, inDoubt) {
	me.doubt = (inDoubt && (STICKY || me.step == GIVING_UP));
	if
	:: releases && PRIOR -> move_record(me.prior, rec); me.prior.alive = false
	:: else
	fi;
	me.token = (TOKEN -> top : rec.token) + 1;
	top = max(top, me.token);
	put(rec, PENDING, me.token, me.attempt, v, true, (inDoubt && STICKY));
	confirm()
}

#define move_slot(to, from) to.step = from.step; to.carrier = from.carrier; to.token = from.token; to.attempt = from.attempt; \
	to.doubt = from.doubt; move_record(to.prior, from.prior)
#define empty(x) x.step = IDLE; x.carrier = 0; x.token = 0; x.attempt = 0; x.doubt = false; clear(x.prior)
#define out_of_order (w[0].step > w[1].step || (w[0].step == w[1].step && (w[0].carrier > w[1].carrier || \
	(w[0].carrier == w[1].carrier && w[0].token > w[1].token))))

/* tidy keeps states apart only by what still matters. */
inline tidy() {
	d_step {
		if
		:: me.step > REQUEUING -> clear(me.prior)
		:: else
		fi;
		if /* the slots are alike: which worker is which does not matter */
		:: out_of_order -> move_slot(spare, w[0]); move_slot(w[0], w[1]); move_slot(w[1], spare); empty(spare)
		:: else
		fi
	}
}

#include "worker.pml"
#include "world.pml"
