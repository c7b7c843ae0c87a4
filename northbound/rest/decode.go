package rest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// decoder fills edge types from raw JSON. An edge type is a struct whose fields
// are pointers (nil: absent) or lists, with json tags in ONOS's order.
type decoder struct {
	faults
}

// edge is what every edge type offers.
type edge interface {
	// entity is the name that sentences use, as in ONOS.
	entity() string
	// check looks for faults that tags can't say. It is called only when the
	// fields are valid one by one.
	check(f *faults)
}

// leniently is implemented by field types with a form of their own.
type leniently interface {
	decode(d *decoder, raw json.RawMessage, path string)
}

// decodeEdge reads a body into an edge type and validates it. The error says
// everything that is wrong with it.
func decodeEdge[T any, E interface {
	*T
	edge
}](body []byte) (E, error) {
	raw, err := firstValue(body)
	if err != nil {
		return nil, err
	}
	return decodeRaw[T, E](raw)
}

func decodeRaw[T any, E interface {
	*T
	edge
}](raw json.RawMessage) (E, error) {
	var v T
	e := E(&v)
	if raw[0] != '{' {
		return nil, badRequest("the body is %s, an object is needed (%s)", jsonKind(raw), e.entity())
	}
	var d decoder
	d.object(raw, reflect.ValueOf(e).Elem(), "")
	if err := d.err(); err != nil {
		return nil, err
	}
	validateTags(e, &d.faults)
	if len(d.faults) == 0 {
		e.check(&d.faults)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return e, nil
}

// fieldInfo describes a field of an edge type.
type fieldInfo struct {
	name  string
	index int
	// addresses: the list holds addresses, so that a null in it is no address
	// rather than no element.
	addresses bool
}

type typeInfo struct {
	fields []fieldInfo
	named  map[string]int // name → index of fields
}

var typeInfos sync.Map // reflect.Type → *typeInfo

func infoOf(t reflect.Type) *typeInfo {
	if x, ok := typeInfos.Load(t); ok {
		return x.(*typeInfo)
	}
	info := &typeInfo{named: map[string]int{}}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" || t.Field(i).Tag.Get("read") == "-" {
			continue
		}
		info.named[name] = len(info.fields)
		info.fields = append(info.fields, fieldInfo{name, i, strings.Contains(t.Field(i).Tag.Get("validate"), "dive,"+tagAddress)})
	}
	x, _ := typeInfos.LoadOrStore(t, info)
	return x.(*typeInfo)
}

// object reads an object into the struct v.
func (d *decoder) object(raw json.RawMessage, v reflect.Value, path string) {
	if raw[0] != '{' {
		d.add("%s is %s, an object is needed", path, jsonKind(raw))
		return
	}
	info := infoOf(v.Type())
	// Names are compared exactly; of equal ones the last counts.
	given := make([]json.RawMessage, len(info.fields))
	members(raw, func(name string, value json.RawMessage) {
		if i, ok := info.named[name]; ok {
			given[i] = value
		}
	})
	for i, f := range info.fields {
		if x := given[i]; x != nil && !isNull(x) {
			d.value(x, v.Field(f.index), joinPath(path, f.name), f.addresses)
		}
	}
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// value reads a value that is not null into a field.
func (d *decoder) value(raw json.RawMessage, v reflect.Value, path string, addresses bool) {
	if own, ok := v.Addr().Interface().(leniently); ok {
		own.decode(d, raw, path)
		return
	}
	switch p := v.Addr().Interface().(type) {
	case **string:
		if s, ok := d.text(raw, path); ok {
			*p = &s
		}
	case **int32:
		if n, ok := d.integer(raw, path); ok {
			*p = &n
		}
	case **bool:
		if b, ok := d.boolean(raw, path); ok {
			*p = &b
		}
	case *[]string:
		d.each(raw, path, func(x json.RawMessage, path string) {
			if isNull(x) && !addresses {
				d.add("%s is null, a text is needed", path)
				return
			}
			if s, ok := d.text(x, path); ok {
				*p = append(*p, s)
			}
		})
	default:
		switch v.Kind() {
		case reflect.Pointer:
			o := reflect.New(v.Type().Elem())
			if o.Elem().Kind() == reflect.Slice { // a list that must be there
				d.value(raw, o.Elem(), path, addresses)
			} else {
				d.object(raw, o.Elem(), path)
			}
			v.Set(o)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
			d.each(raw, path, func(x json.RawMessage, path string) {
				o := reflect.New(v.Type().Elem()).Elem()
				d.object(x, o, path)
				v.Set(reflect.Append(v, o))
			})
		default:
			panic("northbound/rest: edge types have no fields of type " + v.Type().String())
		}
	}
}

// each calls f for the elements of an array.
func (d *decoder) each(raw json.RawMessage, path string, f func(raw json.RawMessage, path string)) {
	if raw[0] != '[' {
		d.add("%s is %s, an array is needed", path, jsonKind(raw))
		return
	}
	list, err := elements(raw)
	if err != nil {
		d.add("%s has more than %d elements", path, maxElements)
		return
	}
	for i, x := range list {
		if len(d.faults) > maxFaults {
			return
		}
		f(x, fmt.Sprintf("%s[%d]", path, i))
	}
}
