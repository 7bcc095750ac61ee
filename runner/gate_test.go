package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// queueUp starts one goroutine a name, each of which enters, reports its name and waits to be let go.
func queueUp(t *testing.T, g *gate, ctx context.Context, tool string, limit int, order chan<- string, name string) {
	t.Helper()
	go func() {
		if err := g.enter(ctx, tool, limit); err != nil {
			order <- name + ":" + err.Error()
			return
		}
		order <- name
	}()
	synctest.Wait()
}

func TestWaitersAreAdmittedInTheOrderTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 10)
		if err := g.enter(t.Context(), "a", 0); err != nil {
			t.Fatal(err)
		}
		order := make(chan string, 10)
		for _, name := range []string{"1", "2", "3", "4"} {
			queueUp(t, g, t.Context(), "a", 0, order, name)
		}
		if len(order) != 0 {
			t.Fatalf("%d calls passed a full gate", len(order))
		}
		for _, want := range []string{"1", "2", "3", "4"} {
			g.leave("a", 0)
			if got := <-order; got != want {
				t.Fatalf("admitted %s, want %s", got, want)
			}
		}
	})
}

func TestAFullQueueAnswersBusyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 2)
		order := make(chan string, 10)
		for _, name := range []string{"runs", "waits", "waits too"} {
			queueUp(t, g, t.Context(), "a", 0, order, name)
		}
		if err := g.enter(t.Context(), "a", 0); !errors.Is(err, errBusy) {
			t.Fatalf("enter on a full queue: %v, want busy", err)
		}
		g.leave("a", 0)
		g.leave("a", 0)
		g.leave("a", 0)
		if running, waiting := g.load(); running != 0 || waiting != 0 {
			t.Fatalf("after all left: %d running, %d waiting", running, waiting)
		}
	})
}

func TestAToolsOwnLimitHoldsBackOnlyThatTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(2, 10)
		order := make(chan string, 10)
		queueUp(t, g, t.Context(), "slow", 1, order, "slow1")
		queueUp(t, g, t.Context(), "slow", 1, order, "slow2")
		queueUp(t, g, t.Context(), "quick", 0, order, "quick")
		if a, b := <-order, <-order; a != "slow1" || b != "quick" {
			t.Fatalf("admitted %s and %s, want slow1 and quick", a, b)
		}
		g.leave("quick", 0) // a free place, but slow's own limit stands
		synctest.Wait()
		if len(order) != 0 {
			t.Fatalf("%s ran beside its own limit", <-order)
		}
		g.leave("slow", 1)
		if got := <-order; got != "slow2" {
			t.Fatalf("admitted %s, want slow2", got)
		}
	})
}

func TestACancelledWaiterLeavesTheQueueAndTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 10)
		order := make(chan string, 10)
		ctx, cancel := context.WithCancelCause(t.Context())
		queueUp(t, g, t.Context(), "a", 0, order, "first")
		queueUp(t, g, ctx, "a", 0, order, "gives up")
		queueUp(t, g, t.Context(), "a", 0, order, "last")
		<-order
		cancel(ErrCancelled)
		if got, want := <-order, "gives up:"+ErrCancelled.Error(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		g.leave("a", 0)
		if got := <-order; got != "last" {
			t.Fatalf("admitted %s, want last", got)
		}
		g.leave("a", 0)
		if running, waiting := g.load(); running != 0 || waiting != 0 {
			t.Fatalf("after all left: %d running, %d waiting", running, waiting)
		}
	})
}

func TestAWaiterAdmittedWhileItGivesUpReturnsItsPlace(t *testing.T) {
	g := newGate(1, 1)
	w := &waiter{tool: "a", limit: 1, ready: make(chan struct{})}
	g.admit("b", 0)
	g.waiting = append(g.waiting, w)
	g.leave("b", 0)
	if !w.admitted {
		t.Fatal("the waiter was not admitted")
	}
	g.abandon(w)
	if running, _ := g.load(); running != 0 || len(g.perTool) != 0 {
		t.Fatalf("%d running and limits %v after the place was returned", running, g.perTool)
	}
}
