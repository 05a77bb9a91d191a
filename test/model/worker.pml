/*
 * A worker: one delivery at a time, from its claim to its settling. Each option
 * of the loop is one step; a crash may come before any of them.
 */

#define deliverable(c) (me.step == IDLE && c < carriers && !settled[c] && \
	(other.step == IDLE || other.carrier != c || crashes > 0))

/* A record that a worker has is delivered again only when that worker counts as
 * gone: it lost its partition and goes on all the same. */
inline deliver(c) {
	if
	:: other.step != IDLE && other.carrier == c -> crashes--
	:: else
	fi;
	me.carrier = c;
	claim_again()
}

/* The claim. */
#define ended (rec.state == PENDING && !rec.alive)
#define opens (REOPEN && me.attempt > rec.attempt && !(rec.doubt && KIND == AMO))
#define next_attempt max(me.attempt, rec.attempt + 1)
#define in_doubt_step (KIND == PROBED -> PROBE : (KIND == IDEM && !forgot -> RUN : PARK))
#define run_step (rec.doubt -> in_doubt_step : RUN)

/* The effect. */
#define fail (me.attempt < ATT -> SAY_RETRY : SAY_DEAD)
#define unknown (KIND == PROBED -> PROBE_OWN : (KIND == IDEM -> fail : PARK_OWN))
#define starts (me.step == RUN || me.step == RUN_ON)
#define runs (me.step == IN_FLIGHT || (starts && live && !LATE))
#define buries_above (mine || (rec.state == DEAD && rec.token == me.token && (me.attempt <= rec.attempt || rec.doubt || !RESOLVED)))
#define probes (me.step == PROBE || me.step == PROBE_OWN)

active [2] proctype Worker() {
	byte i = _pid;
end:	do
	:: atomic {
		if
		:: d_step { deliverable(0) -> deliver(0) }
		:: d_step { deliverable(1) -> deliver(1) }
		:: d_step { deliverable(2) -> deliver(2) }
		:: d_step { deliverable(3) -> deliver(3) }
#if CARRIERS > 4
		:: d_step { deliverable(4) -> deliver(4) }
#endif

		/* the store's answers to a claim */
		:: d_step { me.step == CLAIM && rec.state == ABSENT ->
			me.step = RUN; grant(NONE, false) }
		:: d_step { me.step == CLAIM && rec.state == REQUEUED && me.attempt >= rec.attempt ->
			me.step = run_step; grant(NONE, rec.doubt) }
		:: d_step { me.step == CLAIM && rec.state == REQUEUED && me.attempt < rec.attempt -> /* superseded */
			to_settle() }
		:: d_step { me.step == CLAIM && rec.state == DONE -> /* duplicate */
			to_settle() }
		:: d_step { me.step == CLAIM && rec.state == DEAD && opens -> /* a replay's copy */
			me.step = run_step; grant(NONE, rec.doubt) }
		:: d_step { me.step == CLAIM && rec.state == DEAD && !opens && me.attempt <= rec.attempt ->
			to_settle() }
		:: d_step { me.step == CLAIM && rec.state == DEAD && !opens && me.attempt > rec.attempt ->
			me.step = BURY_ABOVE; me.token = rec.token }
		:: d_step { me.step == CLAIM && rec.state == PENDING && rec.alive && MOVE && free_carrier -> /* held too long: moved */
			add_carrier(me.attempt); to_settle() }
		:: d_step { me.step == CLAIM && ended && rec.verdict == GIVEUP ->
			me.step = GIVING_UP; me.attempt = rec.attempt; grant(GIVEUP, rec.doubt) }
		:: d_step { me.step == CLAIM && ended && rec.verdict == RETRY && me.attempt <= rec.attempt && !IN_PLACE -> /* not due yet */
			me.step = REQUEUING; me.attempt = rec.attempt; grant(RETRY, rec.doubt) }
		:: d_step { me.step == CLAIM && ended && rec.verdict == RETRY -> /* due, or the copy itself */
			me.step = run_step; me.attempt = next_attempt; grant(NONE, rec.doubt) }
		:: d_step { me.step == CLAIM && ended && rec.verdict == NONE -> /* the holder ended without a word */
			me.step = (KIND == IDEM && next_attempt > ATT + 1 -> PARK : in_doubt_step); me.attempt = next_attempt; grant(NONE, true) }

		/* a claim that nothing was done with is given back */
		:: d_step { releases && mine && me.step >= RUN && me.step <= REQUEUING ->
			releases--; move_record(rec, me.prior); empty(me) }

		/* the effect */
		:: d_step { starts && !live -> claim_again() }
		:: d_step { starts && live && LATE -> me.step = IN_FLIGHT }
		:: d_step { runs -> lands(); me.step = SEAL }
		:: d_step { runs -> me.step = fail } /* temporary: not applied, and never will be */
		:: d_step { runs -> lands(); me.doubt = true; me.step = unknown }
		:: d_step { runs -> me.doubt = true; me.step = unknown } /* unknown, and not applied */
		:: d_step { runs && LATE -> late++; me.doubt = true; me.step = unknown } /* unknown, and on its way */

		/* the sink is asked what became of it */
		:: d_step { probes && !live -> claim_again() }
		:: d_step { probes && live && applied -> me.step = SEAL }
		:: d_step { probes && live && !applied && !(in_flight && QUIET) -> /* not applied; an own attempt then failed */
			me.doubt = false; me.step = (me.step == PROBE -> RUN : fail) }
		:: d_step { probes && live -> /* cannot say */
			me.doubt = true; me.step = PARK_OWN }

		/* applied: an effect that landed is a fact, whoever holds the key */
		:: d_step { me.step == SEAL && (mine || rec.state == ABSENT || rec.state == REQUEUED || rec.state == DEAD) ->
			put(rec, DONE, 0, me.attempt, NONE, false, false); confirm(); to_settle() }
		:: d_step { me.step == SEAL && !mine && (rec.state == PENDING || rec.state == DONE) -> /* late, refused */
			claim_again() }

		/* another attempt: verdict, copy, hand-over */
		:: d_step { me.step == SAY_RETRY && mine ->
			rec.verdict = RETRY; rec.doubt = (me.doubt && STICKY); me.step = (IN_PLACE -> BEGIN : PRODUCE) }
		:: d_step { (me.step == PRODUCE || me.step == REQUEUING && COPY) && free_carrier ->
			add_carrier(me.attempt + 1); me.step = HAND_OVER }
		:: d_step { me.step == REQUEUING && !COPY -> me.step = HAND_OVER } /* without the rule */
		:: d_step { me.step == HAND_OVER && mine ->
			put(rec, REQUEUED, (TOKEN -> me.token : 0), me.attempt + 1, NONE, false, (me.doubt && STICKY));
			confirm(); to_settle() }

		/* or in place: the same claim goes on once the retry is due */
		:: d_step { me.step == BEGIN && mine && rec.verdict == RETRY ->
			me.attempt++; put(rec, PENDING, me.token, me.attempt, NONE, true, rec.doubt); me.step = RUN_ON }

		/* no other attempt: verdict, dead letter, bury */
		:: d_step { (me.step == SAY_DEAD || me.step == PARK || me.step == PARK_OWN) && mine ->
			me.doubt = (me.doubt || me.step != SAY_DEAD);
			rec.verdict = GIVEUP; rec.doubt = me.doubt; me.step = DEAD_LETTER }
		:: d_step { me.step == DEAD_LETTER || me.step == GIVING_UP ->
			dead = (dead < 2 -> dead + 1 : 2); me.step = BURY }
		:: d_step { me.step == BURY && mine ->
			put(rec, DEAD, me.token, me.attempt, NONE, false, (CARRY -> me.doubt : rec.doubt));
			confirm(); to_settle() }
		:: d_step { me.step == BURY_ABOVE && buries_above ->
			put(rec, DEAD, me.token, max(me.attempt, rec.attempt), NONE, false, rec.doubt);
			confirm(); to_settle() }

		:: d_step { me.step == BEGIN && mine && rec.verdict != RETRY -> claim_again() } /* a failover lost the verdict */

		/* the key went to somebody else meanwhile */
		:: d_step { !mine && (me.step == SAY_RETRY || me.step == HAND_OVER || me.step == SAY_DEAD || me.step == PARK ||
				me.step == PARK_OWN || me.step == BURY || me.step == BEGIN) ->
			claim_again() }
		:: d_step { me.step == BURY_ABOVE && !buries_above ->
			claim_again() }

		:: d_step { me.step == SETTLE -> settled[me.carrier] = true; empty(me) }

		:: d_step { me.step != IDLE && crashes -> crashes--; empty(me) }
		:: d_step { me.step == IN_FLIGHT && crashes -> crashes--; lands(); empty(me) }
		:: d_step { me.step == IN_FLIGHT && crashes -> crashes--; late++; empty(me) }
		fi;
		tidy()
	}
	od
}
