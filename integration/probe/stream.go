package probe

import (
	"fmt"
	"sync"
	"time"
)

// Stream is a steady stream of numbered questions, each of which must be
// answered.
type Stream struct {
	name  string
	send  func(sequence int) error
	close func() error
	stop  chan struct{}
	pulse time.Duration

	asking, listening sync.WaitGroup

	mu       sync.Mutex
	sent     []time.Time
	answered map[int]time.Time
	err      error
}

// Result says what became of a stream.
type Result struct {
	Sent, Answered int
	// Lost are the sequence numbers without answer.
	Lost []int
	// LongestGap is the longest time between two answers.
	LongestGap time.Duration
	// Err is what kept the stream from sending, if anything did.
	Err error
}

// String sums the result up.
func (r Result) String() string {
	s := fmt.Sprintf("%d sent, %d answered, longest gap %s", r.Sent, r.Answered, r.LongestGap.Round(time.Millisecond))
	if len(r.Lost) > 0 {
		s += fmt.Sprintf(", lost: %v", r.Lost)
	}
	if r.Err != nil {
		s += ", " + r.Err.Error()
	}
	return s
}

// newStream starts a stream that asks each pulse; receive blocks for the next
// answer until the stream is closed.
func newStream(name string, pulse time.Duration, send func(int) error, receive func() (int, error), closeSocket func() error) *Stream {
	s := &Stream{name: name, send: send, close: closeSocket, stop: make(chan struct{}), pulse: pulse, answered: map[int]time.Time{}}
	s.asking.Go(s.ask)
	s.listening.Go(func() {
		for {
			sequence, err := receive()
			if err != nil {
				return // the socket is closed by Stop
			}
			s.answer(sequence)
		}
	})
	return s
}

func (s *Stream) ask() {
	tick := time.NewTicker(s.pulse)
	defer tick.Stop()
	for {
		s.mu.Lock()
		sequence := len(s.sent)
		s.sent = append(s.sent, time.Now())
		s.mu.Unlock()
		if err := s.send(sequence); err != nil {
			s.mu.Lock()
			s.err = fmt.Errorf("%s: send %d: %w", s.name, sequence, err)
			s.mu.Unlock()
		}
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
	}
}

func (s *Stream) answer(sequence int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.answered[sequence]; !twice && sequence < len(s.sent) {
		s.answered[sequence] = time.Now()
	}
}

// Answered is the number of answers so far.
func (s *Stream) Answered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.answered)
}

// Position is the number of the next question.
func (s *Stream) Position() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)
}

// lateAnswer is how long an answer may take before its question counts as lost.
const lateAnswer = 2 * time.Second

// Stop ends the stream and waits for late answers.
func (s *Stream) Stop() Result {
	close(s.stop)
	s.asking.Wait()
	deadline := time.Now().Add(lateAnswer)
	for s.outstanding() && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	_ = s.close()
	s.listening.Wait()
	return s.result()
}

func (s *Stream) outstanding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.answered) < len(s.sent)
}

func (s *Stream) result() Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Result{Sent: len(s.sent), Answered: len(s.answered), Err: s.err}
	var last time.Time
	for sequence := range s.sent {
		at, ok := s.answered[sequence]
		if !ok {
			r.Lost = append(r.Lost, sequence)
			continue
		}
		if !last.IsZero() && at.Sub(last) > r.LongestGap {
			r.LongestGap = at.Sub(last)
		}
		last = at
	}
	return r
}
