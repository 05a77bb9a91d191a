/* What happens around the workers, and what must hold. */

#define in_doubt (rec.state == PENDING || rec.doubt)
#define same_as_safe (rec.state == safe.state && rec.token == safe.token && rec.attempt == safe.attempt && \
	rec.verdict == safe.verdict && rec.alive == safe.alive && rec.doubt == safe.doubt)
#define nobody_works (w[0].step == IDLE && w[1].step == IDLE)

active proctype World() {
end:	do
	:: d_step { rec.state == PENDING && rec.alive && leases -> rec.alive = false; leases-- }

	/* a replica that has only confirmed writes takes over */
	:: d_step { failovers && !same_as_safe -> move_record(rec, safe); rec.alive = false; failovers-- }

	/* retention ends */
	:: d_step { purges && rec.state != ABSENT && rec.state != DONE && !rec.alive && !(in_doubt && DOUBT) ->
		clear(rec); clear(safe); purges-- }

	:: d_step { late -> lands(); late-- }
	:: d_step { late -> late-- }
	:: d_step { FORGET && KIND == IDEM && !forgot && applied && nobody_works && !late -> forgot = true }

	/* a person looks at the dead letter, finds out, says so, and replays */
	:: d_step { replays && dead && free_carrier && rec.state == DEAD && rec.doubt && !applied && !in_flight ->
		rec.doubt = false; confirm() }
	:: d_step { replays && dead && rec.state == DEAD && rec.doubt && applied ->
		put(rec, DONE, 0, rec.attempt, NONE, false, false); confirm() }
	:: d_step { replays && dead && free_carrier && rec.state == DEAD && REOPEN && !(rec.doubt && KIND == AMO) ->
		add_carrier(rec.attempt + 1); dead--; replays-- }
	:: d_step { replays && dead && free_carrier && rec.state == DEAD && !REOPEN -> /* without the rule */
		clear(rec); add_carrier(1); dead--; replays-- }
	od
}

#define all_settled (nobody_works && !late && settled[0] && settled[1] && (carriers < 3 || settled[2]) && \
	(carriers < 4 || settled[3]) && (carriers < 5 || settled[CARRIERS - 1]))

active proctype Monitor() {
end:	do
	:: d_step { applied > 1 -> assert(false /* applied twice */) }
	:: d_step { all_settled && !applied && !dead -> assert(false /* lost */) }
	od
}
