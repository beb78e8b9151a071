/* One lease: claimed, renewed, released and fenced by compare-and-set on the
 * newest event of its family; lapsed by the log clock; counted by its holder
 * from before each send (design §3). The cursor of the seat's mailbox is in it
 * as one word, for the wall behind the lease (§4); cursor.pml has it in full.
 *
 * Why the abstractions are sound:
 *
 * - Sequences are not numbered. All that is ever asked of one is whether it is
 *   still the family's newest. A write in flight for which it is not any more
 *   will be refused, and its sender has learned nothing yet: it is dropped at
 *   once, and what the sender believes stays as it was.
 * - Time is ticks, of which only ages are kept, each up to the bound at which it
 *   decides something. A node may be scheduled as late as one likes: that is
 *   every pause that its clocks count. Its clocks may also miss ticks: up to
 *   BOUND of them since a proof are the drift that the bound is for; more are a
 *   pause that no clock shows (a virtual machine's), the one fault that may
 *   break the argument of time. Then the cursor is the wall.
 * - An answer may come late, or never. A write that is repeated until answered
 *   is one whose answer comes late; one that is given up (late) lands whenever
 *   it likes, also after its sender's death, or not at all.
 * - A sample of the log clock is one step: a clock read later than the head
 *   only makes events look younger.
 * - A process that crashed is nobody (DEAD): a restart is another incarnation,
 *   and which dead one a lease names makes no difference.
 * - A turn is in flight as long as the fence is open, which is the worst case.
 *
 * Bounds: two nodes, MAXEPOCH claims. Everything else repeats without end.
 */
#ifndef MAXEPOCH
#define MAXEPOCH 3
#endif
#define NODES 2

#define HEARTBEAT 1 /* a turn starts on a proof no older than this (A1) */
#define TTL       2 /* the fence is shut from here on (F2) */
#define BOUND     1 /* what two clocks may differ by over a TTL */

/* variant: NO_BOUND: assertion: a lease lapses after its TTL alone, with no bound for clocks that drift */
#ifdef NO_BOUND
#define LAPSE TTL
#else
#define LAPSE (TTL + BOUND)
#endif

#define FREE NODES       /* nobody: never claimed, or released */
#define DEAD (NODES + 1) /* an incarnation that crashed */

#define NONE     0 /* a lease write in flight, and answered but not heard of */
#define CLAIM    1
#define RENEW    2
#define RELEASE  3
#define CLAIMED  4
#define RENEWED  5

/* The family's newest event says all of a lease (aggregates: Lease). */
byte owner = FREE;
byte epoch = 0;
bool fenced = 0; /* by an operator: not renewable, not free */

byte cursor = 0; /* the epoch that has the mailbox */
bool calm = 0;   /* faults have ended */

/* A write that its sender gave up, or did not live to see answered. */
byte late = NONE;
byte lateBy = FREE;

typedef Node {
	bool up, held, open; /* the process, its lease, its takeover of the cursor */
	byte ep;     /* of what it holds, or claims */
	byte good;   /* age of the newest proof, since before its send */
	byte missed; /* ticks that its clocks missed since */
	byte op;     /* its lease write */
	byte since, sinceMissed; /* as good and missed, of that write */
	bool covers; /* its log clock: a sample covers the newest event, */
	byte unseen; /* which is at least this old */
#ifdef CLOCK_BEFORE_HEAD
	bool asking;
#endif
};
Node n[NODES];

#define blind(i)     (n[i].missed > BOUND)
#define fenceOpen(i) (n[i].held && n[i].good < TTL)
#define mayStart(i)  (n[i].held && n[i].open && n[i].good <= HEARTBEAT)
#define renewable(i) (owner == i && epoch == n[i].ep && !fenced)

/* variant: FENCED_IS_FREE: assertion: a fenced lease is claimed without waiting out its time */
#ifdef FENCED_IS_FREE
#define vacant (owner == FREE || fenced)
#else
#define vacant (owner == FREE)
#endif
/* variant: WALL_CLOCK: assertion: lapse judged by the broker's stamp and a wall clock, which can be set */
#ifdef WALL_CLOCK
byte stamp = 0; /* how old the newest event looks by it */
#define lapsed(i) (stamp >= LAPSE)
#else
#define lapsed(i) (n[i].covers && n[i].unseen >= LAPSE)
#endif
#define claimable(i) (epoch < MAXEPOCH && owner != i && (vacant || lapsed(i)))

/* One admitted holder: whose fence is open has the newest epoch, unless its
 * clocks missed more than the bound. */
#define exclusive(i) (!fenceOpen(i) || blind(i) || n[i].ep == epoch)

inline idle(i) { n[i].op = NONE; n[i].since = 0; n[i].sinceMissed = 0 }

inline forget(i) {
	n[i].held = 0; n[i].open = 0; n[i].ep = 0; n[i].good = 0; n[i].missed = 0
}

/* An event of the family is stored: the check of no other write fits any more,
 * and no sample covers the newest event. */
inline newEvent() {
	for (k : 0 .. NODES - 1) {
		n[k].covers = 0;
#ifdef CLOCK_BEFORE_HEAD
		if :: n[k].asking :: else -> n[k].unseen = 0 fi;
#else
		n[k].unseen = 0;
#endif
		if
		:: n[k].op == CLAIM -> idle(k); n[k].ep = 0
		/* variant: RENEW_UNCHECKED: assertion: a renewal is appended whoever has the lease by then */
#ifndef RENEW_UNCHECKED
		:: n[k].op == RENEW -> idle(k)
#endif
		:: n[k].op == RELEASE -> idle(k)
		:: else
		fi
	}
	late = NONE; lateBy = FREE;
#ifdef WALL_CLOCK
	stamp = 0;
#endif
	for (k : 0 .. NODES - 1) { assert(exclusive(k)) }
	k = 0
}

inline proven(i) {
	n[i].good = n[i].since; n[i].missed = n[i].sinceMissed;
	/* variant: COUNT_FROM_ANSWER: assertion: the holder counts from the answer, not from before the send */
#ifdef COUNT_FROM_ANSWER
	n[i].good = 0; n[i].missed = 0;
#endif
	idle(i);
	assert(exclusive(i))
}

proctype node(byte i) {
	byte k;
	do
	/* -- the process ------------------------------------------------------ */
	:: atomic { !n[i].up -> n[i].up = 1 }
	:: atomic { n[i].up && !calm -> /* it crashes; what it sent may land yet */
		if
		:: late == NONE && (n[i].op == CLAIM || n[i].op == RENEW || n[i].op == RELEASE) ->
			late = n[i].op; lateBy = DEAD
		:: late != NONE && lateBy == i -> lateBy = DEAD
		:: else
		fi;
		if :: owner == i -> owner = DEAD :: else fi;
		forget(i); idle(i); n[i].up = 0; n[i].covers = 0; n[i].unseen = 0;
#ifdef CLOCK_BEFORE_HEAD
		n[i].asking = 0
#endif
	}

	/* -- the log clock: the head first, then the clock ---------------------- */
#ifndef CLOCK_BEFORE_HEAD
	:: atomic { n[i].up && !n[i].covers && owner != FREE && owner != i -> n[i].covers = 1 }
#else
	/* variant: CLOCK_BEFORE_HEAD: assertion: a sample reads the clock first, and then the log's head */
	:: atomic { n[i].up && !n[i].covers && !n[i].asking -> n[i].asking = 1 }
	:: atomic { n[i].asking -> n[i].asking = 0; n[i].covers = 1 }
#endif

	/* -- claim (L3, L6): epoch and check come from one read ------------------ */
	:: atomic { n[i].up && !n[i].held && n[i].op == NONE && claimable(i) ->
		n[i].op = CLAIM; n[i].ep = epoch + 1;
		/* variant: EPOCH_FROM_VIEW: assertion: the next epoch is taken from a projection that may lag */
#ifdef EPOCH_FROM_VIEW
		if :: true :: epoch > 0 -> n[i].ep = epoch fi
#endif
	}
	:: atomic { n[i].op == CLAIM -> /* stored */
		assert(n[i].ep > epoch); /* epochs rise */
		n[i].op = CLAIMED; epoch = n[i].ep; owner = i; fenced = 0; newEvent()
	}
	:: atomic { n[i].op == CLAIMED -> n[i].held = 1; proven(i) }
	:: atomic { n[i].op == CLAIMED && !calm -> idle(i); n[i].ep = 0 } /* never heard of */

	/* -- renew (L8, A2) ------------------------------------------------------- */
	:: atomic { n[i].held && n[i].op == NONE && n[i].good > 0 ->
		if
		:: renewable(i) -> n[i].op = RENEW
		:: else -> forget(i)
		fi
	}
	:: atomic { n[i].op == RENEW -> /* stored */
		assert(owner == i && epoch == n[i].ep); /* nobody renews another's tenure */
		n[i].op = RENEWED; newEvent()
	}
	:: atomic { n[i].op == RENEWED ->
		if
		:: n[i].held -> proven(i)
		:: else -> idle(i)
		fi
	}
	:: atomic { n[i].op == RENEWED && !calm -> /* never heard of: renewed anew */
		idle(i)
		/* variant: COUNT_FROM_REPEAT: assertion: a renewal stored at its first send proves time from its repeat */
#ifdef COUNT_FROM_REPEAT
		; n[i].op = RENEWED
#endif
	}

	/* -- give up and give back (A3, H5, L4) ------------------------------------ */
	:: atomic { n[i].held && (n[i].good >= TTL || !calm) && n[i].op != RENEWED ->
		forget(i); idle(i)
	}
	:: atomic { n[i].up && !n[i].held && n[i].op == NONE && owner == i -> n[i].op = RELEASE }
	:: atomic { n[i].op == RELEASE -> owner = FREE; fenced = 0; newEvent() } /* stored */

	/* -- no answer: the write is given up ---------------------------------------- */
	:: atomic { !calm && late == NONE && n[i].op != NONE && n[i].op <= RELEASE ->
		late = n[i].op; lateBy = i;
		if :: n[i].op == CLAIM -> n[i].ep = 0 :: else fi;
		/* variant: RELEASE_UNDONE_BY_READ: assertion: a release of unknown outcome that a read does not show is taken back */
#ifdef RELEASE_UNDONE_BY_READ
		if :: n[i].op == RELEASE && !fenced -> n[i].held = 1; n[i].ep = epoch :: else fi;
#endif
		idle(i)
	}

	/* -- the wall: the cursor is taken over once, and checked by each attempt ----- */
	:: atomic { n[i].held && !n[i].open ->
		if
		:: cursor < n[i].ep -> cursor = n[i].ep; n[i].open = 1
		:: else -> forget(i); idle(i)
		fi
	}
	:: atomic { mayStart(i) && (!calm || cursor != n[i].ep) ->
		if
		/* variant: ATTEMPT_UNCHECKED: assertion: a turn starts on the lease alone, whoever took the cursor over */
#ifdef ATTEMPT_UNCHECKED
		:: true -> assert(cursor == n[i].ep)
#else
		:: cursor == n[i].ep -> assert(cursor == n[i].ep) /* admitted */
#endif
		:: cursor != n[i].ep -> forget(i); idle(i) /* refused: it is fenced */
		fi
	}
	od
}

#define older(age, max) age = (age < max -> age + 1 : age)

/* What is due within the tick once faults have ended. */
#define due(i) (!n[i].up || n[i].op != NONE || \
	(n[i].held && (n[i].good > 0 || !n[i].open)) || \
	(!n[i].held && owner != FREE && owner != i && !n[i].covers) || \
	(!n[i].held && (owner == i || claimable(i))))

proctype world() {
	byte k;
	do
	/* What was given up lands, or never does. */
	:: atomic { late == CLAIM ->
		epoch++; assert(epoch <= MAXEPOCH); owner = lateBy; fenced = 0; newEvent()
	}
	:: atomic { late == RENEW -> newEvent() }
	:: atomic { late == RELEASE -> owner = FREE; fenced = 0; newEvent() }
	:: atomic { late != NONE -> late = NONE; lateBy = FREE }

	/* An operator fences the tenure, once. */
	:: atomic { owner != FREE && !fenced && !calm -> fenced = 1; newEvent() }

	/* Time. Once faults have ended, a tick is as long as what is due takes. */
	:: atomic { !calm || (late == NONE && !due(0) && !due(1)) ->
		for (k : 0 .. NODES - 1) {
			if
			:: true -> /* its clocks see the tick */
				if :: n[k].held -> older(n[k].good, TTL) :: else fi;
				if :: n[k].op != NONE && n[k].op != RELEASE -> older(n[k].since, TTL) :: else fi;
#ifdef CLOCK_BEFORE_HEAD
				if :: n[k].asking -> older(n[k].unseen, LAPSE) :: else fi;
#endif
				if :: n[k].covers -> older(n[k].unseen, LAPSE) :: else fi
			:: !calm && (n[k].held || n[k].op == CLAIM || n[k].op == CLAIMED) -> /* or not */
				if :: n[k].held -> older(n[k].missed, BOUND + 1) :: else fi;
				if :: n[k].op != NONE && n[k].op != RELEASE -> older(n[k].sinceMissed, BOUND + 1) :: else fi
			fi
		}
#ifdef WALL_CLOCK
		older(stamp, LAPSE);
#endif
		k = 0
	}
#ifdef WALL_CLOCK
	:: atomic { !calm -> stamp = LAPSE } /* somebody sets the clock */
#endif
#ifdef LIVE
	:: atomic { !calm -> calm = 1 }
#endif
	od
}

init {
	atomic { run node(0); run node(1); run world() }
}

#ifdef LIVE
/* Once faults have ended somebody may start turns, again and again. Not judged:
 * a run in which the last epoch's holder has left or died by then. */
#define spent     (epoch == MAXEPOCH && owner != 0 && owner != 1)
#define serves(i) (mayStart(i) && owner == i && cursor == epoch)
ltl served { [] (calm -> <> (serves(0) || serves(1) || spent)) }
#endif
