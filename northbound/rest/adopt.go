package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"kvnet/model"
)

// Adopter takes over what a former controller has left on the switches.
type Adopter interface {
	// Adopt does it, or with DryRun only counts. An error of type AdoptRefusal
	// says that the request can't be meant.
	Adopt(ctx context.Context, r AdoptRequest) (AdoptReport, error)
}

// AdoptRequest says which rules are taken over: those whose cookie is equal to
// Cookie under Mask.
type AdoptRequest struct {
	Cookie, Mask uint64
	Switch       model.DPID // 0: all that are connected
	DryRun       bool
}

// AdoptRefusal is a sentence about a request that can't be meant.
type AdoptRefusal string

func (r AdoptRefusal) Error() string { return string(r) }

// AdoptReport is the answer of POST /kvnet/v1/adopt.
type AdoptReport struct {
	Switches []AdoptView `json:"switches" validate:"required"`
	// Waiting says whose rules are not whole yet, and so not among those that
	// are added.
	Waiting []WaitingView `json:"waiting" validate:"required"`
} // @name AdoptionReport

// AdoptView says what an adoption does, or has done, on a switch. Matched rules
// are either replaced by one of kvnet's or removed; those added replace none.
type AdoptView struct {
	ID       string `json:"id" validate:"required"`
	Matched  int    `json:"matched" validate:"required"`
	Replaced int    `json:"replaced" validate:"required"`
	Removed  int    `json:"removed" validate:"required"`
	Groups   int    `json:"groups" validate:"required"`
	Added    int    `json:"added" validate:"required"`
	// Error says why nothing, or not everything, was done; empty: all is well.
	Error string `json:"error" validate:"required"`
} // @name AdoptedSwitch

func (s *Server) adoptRoutes() []route {
	if s.adopter == nil {
		return nil
	}
	return []route{{method: http.MethodPost, path: ownPath + "/adopt", input: true, output: true, handle: s.adopt}}
}

type adoptJSON struct {
	// The rules with this cookie are meant. Behind a slash stands the mask: which bits
	// of a cookie must be equal.
	Cookie *string `json:"cookie" validate:"required" example:"0x00b5000000000000/0xffff000000000000"`
	// The datapath id of the switch that is meant; all switches if it is left out.
	Switch *string `json:"switch" example:"of:0000000000000001"`
	// Only count.
	DryRun *bool `json:"dryRun" example:"true"`
} // @name Adoption

func (*adoptJSON) entity() string { return "Adoption" }

func (a *adoptJSON) check(f *faults) { a.request(f) }

// ParseCookie reads a cookie with its mask, VALUE/MASK. Without a mask all bits count.
func ParseCookie(text string) (cookie, mask uint64, err error) {
	value, bits, masked := strings.Cut(text, "/")
	if cookie, err = strconv.ParseUint(value, 0, 64); err != nil {
		return 0, 0, fmt.Errorf("%q is no 64-bit number; the form is 0x00b5000000000000/0xffff000000000000", shown(value))
	}
	mask = ^uint64(0)
	if masked {
		if mask, err = strconv.ParseUint(bits, 0, 64); err != nil {
			return 0, 0, fmt.Errorf("the mask %q is no 64-bit number; the form is 0x00b5000000000000/0xffff000000000000", shown(bits))
		}
	}
	return cookie, mask, nil
}

// request reads the texts and says what is wrong with them.
func (a *adoptJSON) request(f *faults) (r AdoptRequest) {
	var err error
	if r.Cookie, r.Mask, err = ParseCookie(*a.Cookie); err != nil {
		f.add("cookie: %s", err)
	}
	if a.Switch != nil && *a.Switch != "" {
		if r.Switch, err = model.ParseDPID(*a.Switch); err != nil {
			f.add("switch: %s", shown(err.Error()))
		}
	}
	r.DryRun = a.DryRun != nil && *a.DryRun
	return r
}

// adopt is what `kvnet adopt` calls.
//
// @ID          adopt
// @Summary     Take over what a former controller has left on the switches
// @Description kvnet's own rules go in, then the rules whose cookie is named go out, with the groups that only they use. No packet is lost. Try it with dryRun first.
// @Tags        adoption
// @Accept      json
// @Produce     json
// @Param       adoption body adoptJSON true "which rules"
// @Success     200 {object} AdoptReport "what was done on each switch; with dryRun, what would be done"
// @x-added     true
// @Router      /kvnet/v1/adopt [post]
func (s *Server) adopt(c *gin.Context) error {
	a, err := decodeEdge[adoptJSON](bodyOf(c))
	if err != nil {
		return err
	}
	var none faults // decodeEdge has found none
	report, err := s.adopter.Adopt(c.Request.Context(), a.request(&none))
	var refusal AdoptRefusal
	if errors.As(err, &refusal) {
		return badRequest("cookie: %s", refusal.Error())
	}
	if err != nil {
		return refuse(http.StatusServiceUnavailable, "nothing is adopted: %s", err.Error())
	}
	if report.Switches == nil {
		report.Switches = []AdoptView{}
	}
	if report.Waiting == nil {
		report.Waiting = []WaitingView{}
	}
	return s.answer(c, http.StatusOK, report)
}
