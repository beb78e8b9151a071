/* Handoffs of one seat between two nodes: requested, warmed, quiesced, flushed,
 * released in one batch with the lease, claimed, completed; declined and
 * abandoned at every step; crashes, plain releases and lapses beside it (§5).
 *
 * Why the abstractions are sound:
 *
 * - Every step is a compare-and-set: one that was decided on older facts is
 *   refused, which is as if it had not been sent. So decision and append are one
 *   step, and what is left of a write in flight is that its answer may be lost,
 *   and that one that was given up may land later, also after its sender's
 *   death, for as long as what it checks has not moved (late).
 * - A node acts on its fold of the log, which may lag as far as one likes; its
 *   commands are decided on the newest events, as commands.Handoff reads them.
 * - Time is left out: any deadline, any reservation may be over at any moment.
 *   A lease may lapse at any moment too, but with its holder's fence shut by
 *   then, which is what lease.pml shows. Renewals are no events here.
 * - Warming, and how a seat is established, have no state. A process that
 *   crashed is nobody (DEAD); the one that comes after it is the bystander.
 *
 * Bounds: two nodes, MAXEPOCH claims, MAXSAGA handoffs.
 */
#ifndef MAXEPOCH
#define MAXEPOCH 3
#endif
#define MAXSAGA 2
#define NODES   2
#define FREE    NODES /* nobody; as a successor: it is reserved for nobody */
#define DEAD    (NODES + 1)

#define NOTHING   0 /* a handoff's steps, and what is written: one is the other */
#define REQUESTED 1
#define WARMED    2
#define QUIESCED  3
#define FLUSHED   4
#define RELEASED  5
#define COMPLETED 6
#define DECLINED  7
#define ABANDONED 8
#define CLAIM     9  /* of the lease alone */
#define PLAIN     10 /* release of the lease alone */

/* The lease (aggregates: Lease). */
byte owner = FREE, epoch = 0;
byte reserved = FREE; /* for whom, */
byte reservedBy = 0;  /* by which handoff, */
bool waited = 0;      /* and its time is over, by the log clock */

/* The handoffs; the newest is the seat's (sagas: Handoff). */
typedef Saga { byte from, to, ep; bool torn; }; /* torn: it ended at quiesced or later */
Saga s[MAXSAGA + 1];
byte newest = 0, step = NOTHING;
byte quiescedAt = 0; /* newest tenure that a handoff quiesced: for the assertions only */

byte late = NOTHING, lateBy = FREE;
bool calm = 0;
bool heard; /* the answer to a write came */

typedef Node {
	bool up;
	bool held, torn, leaving; /* the lease; its stages are down; by a plain release */
	bool busy;                /* a turn in flight */
	byte ep, hold;            /* a hold by handoffs, the newest that took it */
	byte saga, at;            /* its fold of the seat's handoffs */
};
Node n[NODES];

#define isOpen          (newest > 0 && step < COMPLETED)
#define mine(i)         (n[i].held && owner == i && epoch == n[i].ep)
#define source(i)       (n[i].saga > 0 && s[n[i].saga].from == i && n[i].held && n[i].ep == s[n[i].saga].ep)
#define target(i)       (n[i].saga > 0 && s[n[i].saga].to == i)
#define current(i)      (n[i].saga == newest)
#define ended(i)        (n[i].at >= DECLINED)
#define claimedByTarget (owner == s[newest].to && epoch == s[newest].ep + 1)
#define lost (step == RELEASED -> (epoch == s[newest].ep -> (owner == FREE && reservedBy != newest) : !claimedByTarget) \
                                : (epoch > s[newest].ep || owner == FREE))

/* variant: SECOND_REQUEST: assertion: a handoff is requested while another is open */
/* variant: REQUEST_TORN_DOWN: assertion: a tenure whose teardown began is handed over anew */
#ifdef SECOND_REQUEST
#define mayRequest !wasTorn
#elif defined(REQUEST_TORN_DOWN)
#define mayRequest !isOpen
#else
#define mayRequest (!isOpen && !wasTorn)
#endif
#define wasTorn (s[newest].torn && s[newest].ep == epoch)

/* variant: QUIESCED_IN_A_TURN: assertion: the seat is quiesced before its turn has ended */
#ifdef QUIESCED_IN_A_TURN
#define still(i) true
#else
#define still(i) !n[i].busy
#endif

inline forget(i) {
	n[i].held = 0; n[i].torn = 0; n[i].leaving = 0; n[i].busy = 0;
	n[i].ep = 0; n[i].hold = 0
}

/* The stages go down: for good, and not under a turn. */
inline tearDown(i) { assert(!n[i].busy); n[i].torn = 1 }

inline drop() { late = NOTHING; lateBy = FREE }

/* An event of the lease, or of the handoff, is stored: a write that was given up
 * and checks it will not land. */
inline leaseEvent() {
	if :: late == CLAIM || late == PLAIN || late == RELEASED -> drop() :: else fi
}
inline sagaEvent() {
	if :: late != CLAIM && late != PLAIN -> drop() :: else fi
}

inline free() { owner = FREE; reserved = FREE; reservedBy = 0; waited = 0 }

/* The log's side of a write. */
inline store(what, who) {
	if
	:: what == CLAIM ->
		/* a reserved seat is its target's until its time is over */
		assert(owner != FREE || reserved == FREE || reserved == who || waited);
		free(); owner = who; epoch++;
		leaseEvent()
	:: what == PLAIN -> free(); leaseEvent()
	:: what == RELEASED ->
		/* variant: TWO_WRITES: assertion: the release of the lease and the handoff's step are two writes */
		free(); reserved = s[newest].to; reservedBy = newest;
#ifndef TWO_WRITES
		step = RELEASED; sagaEvent();
#endif
		leaseEvent()
	:: what == DECLINED || what == ABANDONED ->
		/* a handoff is released or abandoned, never both */
		assert(step >= RELEASED || reservedBy != newest);
		s[newest].torn = (step >= QUIESCED);
		if :: what == DECLINED && step == RELEASED -> reserved = FREE; reservedBy = 0; leaseEvent() :: else fi;
		step = what; sagaEvent()
	:: else ->
		if :: what == QUIESCED -> quiescedAt = s[newest].ep :: else fi;
		step = what; sagaEvent()
	fi
}

inline write(kind, sender) {
	if
	:: store(kind, sender); heard = 1
	:: !calm -> store(kind, sender); heard = 0
	:: !calm && late == NOTHING -> late = kind; lateBy = sender; heard = 0
	fi
}

proctype node(byte i; byte other) {
end:	do
	/* -- the process, and its fold ------------------------------------------------ */
	:: atomic { !n[i].up -> n[i].up = 1 }
	:: atomic { n[i].up && !calm ->
		if :: owner == i -> owner = DEAD :: else fi;
		if :: reserved == i -> reserved = DEAD :: else fi;
		if :: lateBy == i -> lateBy = DEAD :: else fi;
		if :: s[1].from == i -> s[1].from = DEAD :: else fi;
		if :: s[1].to == i -> s[1].to = DEAD :: else fi;
		if :: s[2].from == i -> s[2].from = DEAD :: else fi;
		if :: s[2].to == i -> s[2].to = DEAD :: else fi;
		forget(i); n[i].up = 0; n[i].saga = 0; n[i].at = NOTHING
	}
	:: atomic { n[i].up && (n[i].saga != newest || n[i].at != step) ->
		n[i].saga = newest; n[i].at = step;
		if
		:: newest == 2 && n[0].saga != 1 && n[1].saga != 1 -> /* nobody asks for it any more */
			s[1].from = 0; s[1].to = 0; s[1].ep = 0; s[1].torn = 0
		:: else
		fi
	}

	/* -- claims: plain, over a lapse, in a handoff ---------------------------------- */
	:: atomic { n[i].up && !n[i].held && owner != i && epoch < MAXEPOCH && late != CLAIM &&
		/* variant: RESERVATION_IGNORED: assertion: a reserved seat is claimed by whoever sees it released */
#ifdef RESERVATION_IGNORED
	            (owner == FREE ||
#else
	            (owner == FREE && (reserved == FREE || reserved == i || waited) ||
#endif
	             owner == DEAD || (owner == other && !calm)) ->
		if :: owner == other -> forget(other) :: else fi; /* it lapsed: its fence is shut */
		write(CLAIM, i);
		if :: heard -> n[i].held = 1; n[i].ep = epoch :: else fi; heard = 0
	}

	/* -- plain ends: a drain, a tenure that is over, a lease that it does not hold ---- */
	:: atomic { n[i].held && !n[i].busy && !n[i].torn && !calm -> tearDown(i); n[i].leaving = 1 }
	:: atomic { n[i].leaving && mine(i) -> write(PLAIN, i); if :: heard -> forget(i) :: else fi; heard = 0 }
	:: atomic { n[i].held && !mine(i) -> forget(i) }
	:: atomic { n[i].up && !n[i].held && owner == i && late != CLAIM -> write(PLAIN, i) }

	/* -- the steps ----------------------------------------------------------------------- */
	:: atomic { mine(i) && !n[i].leaving && newest < MAXSAGA && !calm && n[other].up && mayRequest ->
		newest++; s[newest].from = i; s[newest].to = other; s[newest].ep = epoch;
		step = REQUESTED; sagaEvent()
	}
	:: atomic { target(i) && n[i].at == REQUESTED && current(i) && step == REQUESTED -> write(WARMED, i); heard = 0 }
	:: atomic { n[i].saga > 0 && s[n[i].saga].from == i && n[i].held && !n[i].torn && n[i].at == WARMED &&
		/* variant: HOLD_ANY_TENURE: cycle: a late quiesce holds the seat under whichever tenure is here */
#ifndef HOLD_ANY_TENURE
	            n[i].ep == s[n[i].saga].ep &&
#endif
	            n[i].hold < n[i].saga -> n[i].hold = n[i].saga
	}
	:: atomic { source(i) && n[i].at == WARMED && n[i].hold == n[i].saga && current(i) && step == WARMED && still(i) ->
		write(QUIESCED, i); heard = 0
	}
	/* variant: FLUSHED_EARLY: cycle: the stages go down before quiesced stands in the log */
#ifdef FLUSHED_EARLY
	:: atomic { source(i) && !n[i].torn && n[i].at == WARMED && n[i].hold == n[i].saga && !n[i].busy -> tearDown(i) }
#endif
	:: atomic { source(i) && !n[i].torn && n[i].at == QUIESCED -> tearDown(i) }
	:: atomic { source(i) && n[i].torn && n[i].at == QUIESCED && current(i) && step == QUIESCED -> write(FLUSHED, i); heard = 0 }
	:: atomic { source(i) && n[i].torn && n[i].at == FLUSHED && current(i) && step == FLUSHED && mine(i) ->
		write(RELEASED, i);
		if :: heard -> forget(i) :: else fi; heard = 0
	}
#ifdef TWO_WRITES
	:: atomic { step == FLUSHED && reservedBy == newest && n[i].up && s[newest].from == i -> step = RELEASED; sagaEvent() }
#endif
	:: atomic { target(i) && !n[i].held && n[i].at == RELEASED && epoch < MAXEPOCH && late != CLAIM &&
	            owner == FREE && reserved == i && reservedBy == n[i].saga ->
		write(CLAIM, i);
		if :: heard -> n[i].held = 1; n[i].ep = epoch :: else fi; heard = 0
	}
	:: atomic { target(i) && n[i].held && current(i) && step == RELEASED && claimedByTarget -> write(COMPLETED, i); heard = 0 }

	/* -- its ends ------------------------------------------------------------------------- */
	:: atomic { target(i) && current(i) && isOpen && !calm &&
	            (step < RELEASED || (owner == FREE && reserved == i && reservedBy == newest)) -> write(DECLINED, i); heard = 0 }
	/* variant: NO_DEADLINE: cycle: a handoff waits for its next step for ever */
#ifndef NO_DEADLINE
	:: atomic { n[i].up && isOpen -> write(ABANDONED, i); heard = 0 }
#endif
	:: atomic { n[i].up && isOpen && lost -> write(ABANDONED, i); heard = 0 }
	:: atomic { source(i) && ended(i) && !s[n[i].saga].torn && n[i].hold > 0 -> n[i].hold = 0 }
	:: atomic { source(i) && !ended(i) && n[i].hold > 0 && n[i].hold < n[i].saga -> n[i].hold = 0 }
	/* variant: RESUMED: assertion: an abandoned seat goes on, although its teardown may have begun */
#ifdef RESUMED
	:: atomic { source(i) && ended(i) && s[n[i].saga].torn && !n[i].leaving -> n[i].hold = 0; n[i].torn = 0 }
#else
	:: atomic { source(i) && ended(i) && s[n[i].saga].torn && !n[i].leaving && !n[i].busy ->
		if :: !n[i].torn -> tearDown(i) :: else fi;
		n[i].leaving = 1
	}
#endif

	/* -- turns: admitted by a running seat that nothing holds ------------------------------ */
	:: atomic { mine(i) && !n[i].torn && n[i].hold == 0 && !n[i].busy && !calm ->
		assert(n[i].ep != quiescedAt); /* nothing starts once a handoff quiesced the tenure */
		n[i].busy = 1
	}
	:: atomic { n[i].busy -> n[i].busy = 0 }
	/* Admission's own hold (A2), taken and lifted again, changes no other: no step. */
	/* variant: UNQUIESCE_ALL: assertion: a renewal after a blip lifts every hold, not admission's alone */
#ifdef UNQUIESCE_ALL
	:: atomic { mine(i) && n[i].hold > 0 && !calm -> n[i].hold = 0 }
#endif
	od
}

proctype world() {
end:	do
	:: atomic { late != NOTHING -> store(late, lateBy); drop() }
	:: atomic { late != NOTHING -> drop() }
	/* variant: RESERVED_FOR_EVER: cycle: a reservation ends by its target's hand only */
#ifndef RESERVED_FOR_EVER
	:: atomic { owner == FREE && reserved != FREE && !waited -> waited = 1 }
#endif
#ifdef LIVE
	:: atomic { !calm -> calm = 1 }
#endif
	od
}

init {
	atomic { run node(0, 1); run node(1, 0); run world() }
}

#ifdef LIVE
/* Once faults have ended the seat is served, and no handoff is open. Not judged:
 * a run whose last epoch was given up. */
#define serves(i) (mine(i) && !n[i].torn && n[i].hold == 0)
#define leaves(i) (owner == i && (!n[i].held || n[i].torn))
#define spent     (epoch == MAXEPOCH && (owner >= FREE || leaves(0) || leaves(1)))
ltl served { [] (calm -> <> (!isOpen && (serves(0) || serves(1) || spent))) }
#endif
