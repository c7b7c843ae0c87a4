package linear

import "github.com/anishathalye/porcupine"

// Of is the history with all writes, and of the reads those that are consistent or
// those that are not. Writes whose outcome is not known are settled as far as these
// reads tell: each that stays open would double the work of the check.
func Of(history []porcupine.Operation, consistent bool) []porcupine.Operation {
	var out []porcupine.Operation
	first := map[string]int64{}
	for _, o := range history {
		if in := o.Input.(Input); in.Kind == Read {
			if in.Consistent != consistent {
				continue
			}
			value := o.Output.(Output).Value
			if t, ok := first[value]; !ok || o.Return < t {
				first[value] = o.Return
			}
		}
		out = append(out, o)
	}
	return settle(out, first)
}

// settle makes the open writes of a history certain where that can't change whether
// the history fits. first is when the first read of each value had its answer.
//
//   - What has been read was written: as no two writes have the same value, the write
//     was carried out, and before that read was answered. In each order that explains
//     the history it comes before the read and has an effect, so no order is lost.
//     A read that was answered before the write began is left as the contradiction
//     that it is.
//   - An update whose value was never read may as well not have happened. It needs a
//     router and leaves one, and between it and the next write nobody looked: an order
//     with it stays right without it, and one without it stays right if it is put
//     at the end, where open operations end.
//
// An open creation or deletion that nobody has seen can explain why others were
// refused or succeeded, so it stays open.
func settle(history []porcupine.Operation, first map[string]int64) []porcupine.Operation {
	out := history[:0]
	for _, o := range history {
		in := o.Input.(Input)
		if in.Kind == Read || in.Kind == Delete || o.Output.(Output).Outcome != Unknown {
			out = append(out, o)
			continue
		}
		switch read, seen := first[in.Value]; {
		case seen && read >= o.Call:
			o.Output, o.Return = Output{Outcome: Done}, read
		case !seen && in.Kind == Update:
			continue
		}
		out = append(out, o)
	}
	return out
}
