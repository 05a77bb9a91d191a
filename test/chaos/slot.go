package chaos

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/oncefence/oncefence/test/sweep/member"
)

// slot is the place of one member: whatever ends in it is started again, as a
// supervisor would, until it is closed.
type slot struct {
	name    string
	program string
	cfg     member.Settings
	tell    func(name string, e member.Event)
	died    func(name string, at time.Time)
	single  bool // one process, whatever becomes of it

	mu     sync.Mutex
	p      *member.Process
	log    bytes.Buffer
	wanted bool
	kills  int
	ends   []string // what members that ended by themselves said
	over   chan struct{}
}

func (s *slot) run() {
	s.wanted, s.over = true, make(chan struct{})
	go func() {
		defer close(s.over)
		for s.once() {
		}
	}()
}

// Write keeps what the member says, the end of it.
func (s *slot) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log.Len() > 1<<16 {
		s.log.Next(s.log.Len() / 2)
	}
	return s.log.Write(b)
}

// once runs one process to its end and reports whether another is wanted.
func (s *slot) once() bool {
	s.mu.Lock()
	if !s.wanted {
		s.mu.Unlock()
		return false
	}
	p, err := member.Start(s.program, s.cfg, "", s, func(e member.Event) { s.tell(s.name, e) })
	if err != nil {
		s.ends = append(s.ends, err.Error())
		s.wanted = false
		s.mu.Unlock()
		return false
	}
	s.p, s.wanted = p, !s.single
	s.mu.Unlock()
	<-p.Ended
	s.mu.Lock()
	switch {
	case p.Killed():
		s.died(s.name, p.At)
	case p.Err != nil:
		said := s.log.Bytes()
		if i := bytes.LastIndex(said, []byte("member:")); i >= 0 {
			said = said[i:]
		}
		s.ends = append(s.ends, p.Err.Error()+": "+string(bytes.TrimSpace(said[max(0, len(said)-800):])))
		if s.wanted {
			s.mu.Unlock()
			<-time.After(300 * time.Millisecond) // as a supervisor waits
			s.mu.Lock()
		}
	}
	defer s.mu.Unlock()
	return s.wanted
}

func (s *slot) process() *member.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.p
}

// kill ends the process that runs now; another one follows.
func (s *slot) kill() {
	if p := s.process(); p != nil {
		s.mu.Lock()
		s.kills++
		s.mu.Unlock()
		p.Kill()
	}
}

// pause stops the process for a while and lets it go on.
func (s *slot) pause(d time.Duration) error {
	p := s.process()
	if p == nil {
		return nil
	}
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return ignoreEnded(err)
	}
	<-time.After(d)
	return ignoreEnded(p.Signal(syscall.SIGCONT))
}

// cycle stops the process cleanly; another one follows.
func (s *slot) cycle() {
	if p := s.process(); p != nil {
		p.AskToStop()
		select {
		case <-p.Ended:
		case <-time.After(10 * time.Second): // it tells at its end that it did not drain
		}
	}
}

// stop ends the place: its process cleanly, and no other follows. It reports
// false when the process had to be killed.
func (s *slot) stop() bool {
	s.mu.Lock()
	s.wanted = false
	p := s.p
	s.mu.Unlock()
	if p != nil {
		p.AskToStop()
	}
	select {
	case <-s.over:
		return true
	case <-time.After(30 * time.Second):
		if p := s.process(); p != nil {
			_ = p.Signal(syscall.SIGQUIT) // its goroutines go to the log
			<-p.Ended
		}
		<-s.over
		return false
	}
}

// said returns how members ended by themselves, and the end of the log.
func (s *slot) said() (ends []string, log string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.log.Bytes()
	return s.ends, string(b[max(0, len(b)-4000):])
}

func ignoreEnded(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
