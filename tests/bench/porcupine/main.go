// Checks a key-value history with porcupine, for so many seconds at most: FILE SECONDS. Prints one JSON object: the
// verdict, and the CPU seconds of the check alone.
//
// The history has one map in each line, as in porcupine's own test data:
//
//	{:process 0, :type :invoke, :f :put, :key "0", :value "x"}
package main

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"log"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

type input struct{ f, key, value string }

// A key holds a text, at first the empty one. Keys are checked separately.
var model = porcupine.Model{
	PartitionEvent: byKey,
	Init:           func() interface{} { return "" },
	Step: func(state, asked, answer interface{}) (bool, interface{}) {
		in, text := asked.(input), state.(string)
		switch in.f {
		case "get":
			return answer.(string) == text, text
		case "put":
			return true, in.value
		default:
			return true, text + in.value
		}
	},
	Hash: func(state interface{}) uint64 {
		hash := fnv.New64a()
		hash.Write([]byte(state.(string)))
		return hash.Sum64()
	},
}

func byKey(events []porcupine.Event) [][]porcupine.Event {
	place, keyOf, parts := map[string]int{}, map[int]string{}, [][]porcupine.Event{}
	for _, event := range events {
		if event.Kind == porcupine.CallEvent {
			keyOf[event.Id] = event.Value.(input).key
		}
		key := keyOf[event.Id]
		if _, known := place[key]; !known {
			place[key] = len(parts)
			parts = append(parts, nil)
		}
		parts[place[key]] = append(parts[place[key]], event)
	}
	return parts
}

var line = regexp.MustCompile(`^\{:process (\d+), :type :(\w+), :f :(\w+), :key "([^"]*)", :value (?:nil|"([^"]*)")\}$`)

func read(path string) []porcupine.Event {
	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	events, calls, count := []porcupine.Event{}, map[int]int{}, 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		found := line.FindStringSubmatch(lines.Text())
		if found == nil {
			log.Fatalf("%s: not an operation on a key: %s", path, lines.Text())
		}
		process, _ := strconv.Atoi(found[1])
		if found[2] == "invoke" {
			calls[process], count = count, count+1
			asked := input{found[3], found[4], found[5]}
			events = append(events, porcupine.Event{ClientId: process, Kind: porcupine.CallEvent, Value: asked, Id: calls[process]})
		} else {
			events = append(events, porcupine.Event{ClientId: process, Kind: porcupine.ReturnEvent, Value: found[5], Id: calls[process]})
		}
	}
	return events
}

func cpu() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func main() {
	events := read(os.Args[1])
	seconds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	begin := cpu()
	verdict := porcupine.CheckEventsTimeout(model, events, time.Duration(seconds)*time.Second)
	fmt.Printf("{\"verdict\": %q, \"check_s\": %.4f}\n", verdict, cpu()-begin)
}
