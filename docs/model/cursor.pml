/* One mailbox: its cursor taken over by each tenure, an attempt recorded before
 * its turn, a completion recorded before its settlement; mail purged up to the
 * watermark (design §4, §6).
 *
 * Why the abstractions are sound:
 *
 * - There is no time, and a lease may be claimed by anybody at any moment,
 *   without its holder being told. So all that is shown here holds however long
 *   a node was paused, whatever its clocks say: this is the wall behind the lease.
 * - The three cursors of a seat are written in one atomic batch, hence one here.
 * - A cursor's newest event is its whole state, and a write that was decided on
 *   another one is refused. So no copies are kept: a writer for which the cursor
 *   moved on has nothing to write, and reads it again.
 * - An answer may come late or never. A write that was given up lands whenever
 *   it likes, also after its sender's death, or not at all (late).
 * - The ledger (WORK) and the parked mail (DEAD) are write-once and fenced by
 *   nothing, and asked at their leaders: one bit for each message.
 *
 * Bounds: two nodes, MAXEPOCH claims, MAIL messages, BUDGET attempts.
 */
#ifndef MAXEPOCH
#define MAXEPOCH 3
#endif
#define NODES  2
#define MAIL   2
#define BUDGET 2 /* turns that may start on a message before it is parked (D3) */

#define NONE     0 /* what a node is at */
#define OPENING  1 /* it claimed, and takes the cursor over */
#define READY    2
#define ATTEMPT  3
#define RUNNING  4
#define SETTLE   5
#define PUTBACK  6 /* Nak */

/* A set of messages is a mask. */
#define bit(m)      (1 << (m))
#define has(set, m) ((set) & bit(m))

byte epoch = 0; /* of the newest claim */
byte sent = 0;  /* messages stored in MAIL, of which */
byte gone = 0;  /* these were purged */
byte done = 0;  /* recorded in WORK, or parked in DEAD */
bool calm = 0;

/* The cursor's newest event (events: CursorSnapshot). */
byte cEpoch = 0;
byte read = 0;       /* messages seen: those below */
byte open = 0;       /* and not settled */
byte tries[MAIL];    /* attempts recorded */

byte starts[MAIL];   /* what the handler saw: for the assertions only */

byte late = NONE, lateMsg = 0, lateEpoch = 0; /* a write that was given up */

typedef Node {
	byte at, ep, msg;
	bool sent;   /* its write is on its way, and was decided on the newest event */
	bool yes;    /* it is stored, and its answer is on its way */
	bool stored; /* its answer was lost: the same write is repeated */
};
Node n[NODES];

#define up(i) (n[i].ep > 0)

inline rest(i, then) {
	n[i].at = then; n[i].msg = 0; n[i].sent = 0; n[i].yes = 0; n[i].stored = 0
}

inline forget(i) { rest(i, NONE); n[i].ep = 0 }

/* A cursor event is stored: what was decided on the one before fits no more. */
inline newEvent() {
	for (k : 0 .. NODES - 1) { n[k].sent = 0 }
	late = NONE; lateMsg = 0; lateEpoch = 0; k = 0
}

/* The log's side of a write that fits. */
inline store(what, which, by) {
	if
	:: what == OPENING ->
		assert(by > cEpoch); /* the rightful holder never goes deaf */
		cEpoch = by;
		/* variant: TAKEOVER_AT_READ: assertion: a successor starts behind what was read, whatever was open */
#ifdef TAKEOVER_AT_READ
		open = 0
#endif
	:: what == ATTEMPT ->
		assert(by == cEpoch); /* a zombie starts nothing */
		/* only what is open, or unread, may be attempted: what is settled never is */
		assert(which >= read || has(open, which));
		tries[which]++;
		if :: which >= read -> read = which + 1; open = open | bit(which) :: else fi
	:: what == SETTLE ->
		assert(by == cEpoch);     /* a zombie settles nothing */
		assert(has(done, which));    /* nothing is lost */
		if :: which >= read -> read = which + 1 :: else fi;
		open = open & ~bit(which)
	:: what == PUTBACK -> assert(by == cEpoch)
	fi;
	newEvent()
}

/* What the handler sees, it sees after an attempt was recorded. */
inline start(which) { starts[which]++; assert(starts[which] <= tries[which]) }

/* variant: WATERMARK_SKIPS: assertion: reading goes on behind a message that was not seen */
#ifdef WATERMARK_SKIPS
#define next(m) (m >= read && m < sent)
#else
#define next(m) (m == read && m < sent)
#endif
#define due(m)  (next(m) || (m < read && has(open, m)))

/* variant: PURGE_TO_READ: assertion: mail is purged up to what was read, not up to the watermark */
#ifdef PURGE_TO_READ
#define settled(m) (m < read && !has(gone, m))
#else
#define settled(m) (m < read && !has(gone, m) && !(open & (bit(m + 1) - 1)))
#endif

/* Nobody alive has the newest tenure: it may be claimed, in calm too. */
#define vacant (!(up(0) && n[0].ep == epoch) && !(up(1) && n[1].ep == epoch))

proctype node(byte i) {
	byte k, m;
end:	do
	/* -- claim and crash: at any moment --------------------------------------- */
	:: atomic { n[i].at == NONE && epoch < MAXEPOCH && (!calm || vacant) ->
		epoch++; n[i].ep = epoch; n[i].at = OPENING
	}
	:: atomic { up(i) && !calm ->
		if
		:: n[i].sent && late == NONE -> late = n[i].at; lateMsg = n[i].msg; lateEpoch = n[i].ep
		:: else
		fi;
		forget(i)
	}

	/* -- decide on the newest event, read from the leader, and send ------------- */
	:: atomic { (n[i].at == OPENING || n[i].at == ATTEMPT || n[i].at == SETTLE || n[i].at == PUTBACK) &&
	            !n[i].sent && !n[i].yes ->
		if
		/* variant: OPEN_OVER_HIGHER: assertion: a slow acquirer opens the cursor over a higher epoch */
#ifdef OPEN_OVER_HIGHER
		:: n[i].at == OPENING -> n[i].sent = 1; n[i].stored = 0
#else
		:: n[i].at == OPENING && cEpoch < n[i].ep -> n[i].sent = 1; n[i].stored = 0
#endif
		:: n[i].at == OPENING && cEpoch == n[i].ep -> rest(i, READY) /* its own, stored before */
		:: n[i].at == ATTEMPT && cEpoch == n[i].ep -> n[i].sent = 1
		:: n[i].at == SETTLE && cEpoch == n[i].ep && !due(n[i].msg) -> rest(i, READY) /* settled before */
		:: n[i].at == SETTLE && cEpoch == n[i].ep && due(n[i].msg) -> n[i].sent = 1
		:: n[i].at == PUTBACK && cEpoch == n[i].ep -> n[i].sent = 1
		/* variant: ATTEMPT_UNCHECKED: assertion: an attempt is appended whoever has the cursor */
		/* variant: SETTLE_UNCHECKED: assertion: a settlement is appended whoever has the cursor */
#ifdef ATTEMPT_UNCHECKED
		:: n[i].at == ATTEMPT && cEpoch != n[i].ep -> n[i].sent = 1
#endif
#ifdef SETTLE_UNCHECKED
		:: n[i].at == SETTLE && cEpoch != n[i].ep -> n[i].sent = 1
#endif
		/* variant: ADMIT_SECOND_HAND: assertion: a repeated attempt is answered by its message id, before its check */
#ifdef ADMIT_SECOND_HAND
		:: n[i].at == ATTEMPT && n[i].stored -> assert(cEpoch == n[i].ep); n[i].yes = 1
#endif
		:: else -> forget(i) /* a successor has it */
		fi
	}

	/* -- the broker takes the write in -------------------------------------------- */
	:: atomic { n[i].sent ->
		/* An attempt whose record was stored before is superseded, and counts once. */
		if
		:: n[i].at == ATTEMPT && n[i].stored -> assert(n[i].ep == cEpoch); newEvent()
		:: else -> store(n[i].at, n[i].msg, n[i].ep)
		fi;
		n[i].yes = 1
	}
	:: atomic { n[i].yes && !calm -> n[i].yes = 0; n[i].stored = 1 } /* the answer is lost */
	:: atomic { n[i].sent && !calm && late == NONE -> /* no answer: given up, and tried anew */
		late = n[i].at; lateMsg = n[i].msg; lateEpoch = n[i].ep;
		if :: n[i].at == ATTEMPT -> rest(i, READY) :: else -> n[i].sent = 0; n[i].stored = 0 fi
	}
	:: atomic { n[i].yes ->
		if
#ifndef START_BEFORE_ATTEMPT
		:: n[i].at == ATTEMPT -> start(n[i].msg); m = n[i].msg; rest(i, RUNNING); n[i].msg = m; m = 0
#else
		:: n[i].at == ATTEMPT -> m = n[i].msg; rest(i, RUNNING); n[i].msg = m; m = 0
#endif
		:: else -> rest(i, READY)
		fi
	}

	/* -- the life of a turn ---------------------------------------------------------- */
	:: atomic { n[i].at == READY && (due(0) || due(1)) ->
		if
		:: due(0) -> m = 0
		:: due(1) -> m = 1
		fi;
		n[i].msg = m;
		if
		:: has(done, m) -> n[i].at = SETTLE /* the ledger has it: skipped */
		:: !has(done, m) && tries[m] >= BUDGET -> done = done | bit(m); n[i].at = SETTLE /* parked */
		:: else ->
			/* variant: START_BEFORE_ATTEMPT: assertion: the handler sees a message before its attempt is recorded */
#ifdef START_BEFORE_ATTEMPT
			start(m);
#endif
			n[i].at = ATTEMPT
		fi;
		m = 0
	}
	:: atomic { n[i].at == RUNNING ->
		if
		:: done = done | bit(n[i].msg); n[i].at = SETTLE
		:: n[i].at = PUTBACK
		/* variant: SETTLE_BEFORE_DONE: assertion: mail is settled before its completion is recorded */
#ifdef SETTLE_BEFORE_DONE
		:: n[i].at = SETTLE
#endif
		fi
	}

	/* -- settled mail is purged, up to the watermark ------------------------------------ */
	:: atomic { n[i].at == READY && (settled(0) || settled(1)) ->
		if
		:: settled(0) -> assert(has(done, 0)); gone = gone | bit(0)
		:: settled(1) -> assert(has(done, 1)); gone = gone | bit(1)
		fi
	}
	od
}

proctype world() {
	byte k;
end:	do
	:: atomic { sent < MAIL && !calm -> sent++ }
	:: atomic { late != NONE -> store(late, lateMsg, lateEpoch) }
	:: atomic { late != NONE -> late = NONE; lateMsg = 0; lateEpoch = 0 }
#ifdef LIVE
	:: atomic { !calm -> calm = 1 }
#endif
	od
}

init {
	atomic { run node(0); run node(1); run world() }
}

#ifdef LIVE
/* All mail that was sent is done with and settled, once faults have ended, but
 * for runs that have used every epoch up. */
#define allSettled (read == sent && open == 0)
#define spent      (epoch == MAXEPOCH && vacant)
ltl served { [] (calm -> <> (allSettled || spent)) }
#endif
