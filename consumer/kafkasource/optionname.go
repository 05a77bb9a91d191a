package kafkasource

import (
	"reflect"
	"runtime"
	"strings"
)

// optionName returns the name of a kgo option as users write it.
func optionName(option any) string {
	full := runtime.FuncForPC(reflect.ValueOf(option).Pointer()).Name()
	return full[strings.LastIndexByte(full, '/')+1:]
}
