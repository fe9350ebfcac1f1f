package laggard

import (
	"slices"
	"strings"

	"github.com/gangrun/gangrun/internal/diagnose/logtext"
	"github.com/gangrun/gangrun/internal/diagnose/roster"
	"github.com/gangrun/gangrun/internal/diagnose/textmatch"
)

var (
	// stackFrame matches a frame of a stack that faulthandler, py-spy, gdb or mpirun has printed.
	stackFrame = textmatch.New(`^\s*(?:File "([^"]+)", line (\d+),? in (\S+)|#\d+ +(?:0x[0-9a-f]+ in )?([\w:~<>]+)|([\w<>.]+) \(([^()]+\.py:\d+|[\w.+-]+)\)(?: <- .*)?$)`)
	// stackHead matches a line above a stack that names the rank.
	stackHead = textmatch.New(`STACK TRACE FOR PROC \[\S+,(\d{1,6})\]|(?i)(?:py-spy|pstack|gdb|stack|dump|trace)\b.*\brank[ =:]{0,2}(\d{1,6})\b|(?i)\brank[ =:]{0,2}(\d{1,6})\b.*\b(?:stacks?|trace|dump)\b|(?i)^process \d+: .*\(rank[ =:]{1,2}(\d{1,6})\b|(?i)^[-=*#]{2,} ?(?:rank|worker|process|task)[ =:#]{1,2}(\d{1,6})\b|(?i)^process \d+: .*[-_ ](?:local[-_])?rank[ =](\d{1,6})\b`)
	// stackPID matches a line above a stack that names the process.
	stackPID = textmatch.New(`^Process (\d{2,8}): |\bstacks? of (?:process |pid )(\d{2,8})\b|\bpy-spy dump\b.*--?pid[ =](\d{2,8})|^[-=*#]{2,} ?(?:pid|PID|process)[ =:]{0,2}(\d{2,8})\b`)
	// oneLine matches the stack of a rank that is printed in one line.
	oneLine = textmatch.New(`(?i)\b(?:rank|task|proc|process|pe|worker)[ =:#]{0,3}(\d{1,6})\b[^<>]{0,40}?: *(\w\S*(?: \(\S+:\d+\))?(?: (?:<-?|←|->?|>|→) ?[\w<>.]+(?: \(\S+:\d+\))?)+)`)
	// waits matches the name of a function in which ranks wait for one another.
	waits = textmatch.New(`(?i)all_?reduce|all_?gather|all_?to_?all|reduce_?scatter|barrier|broadcast|send_?recv|MPI_|mpi4py|\brecv|ompi_request|synchronize|nccl|gloo|distributed_c10d|backward`)
)

// Apart returns the rank whose stack shows that it was elsewhere than all others when their stacks were written, or
// -1.
func Apart(logs []roster.Log, census *roster.Census) int {
	stacks, calls := map[int][]string{}, map[int]string{}
	for _, l := range logs {
		if r := merged(l.Text); r >= 0 {
			return r
		}
		rank := l.Rank
		for _, t := range l.Text {
			if len(t) > longLine {
				continue
			}
			if m := oneLine.FindStringSubmatch(t); m != nil {
				stacks[logtext.Number(m[1])] = append(stacks[logtext.Number(m[1])], m[2])
				continue
			}
			if r := first(stackHead.FindStringSubmatch(t)); r >= 0 && l.Rank < 0 {
				rank = r
			} else if pid := first(stackPID.FindStringSubmatch(t)); pid > 0 && census.OfPID(pid) >= 0 {
				rank = census.OfPID(pid)
			}
			if m := stackFrame.FindStringSubmatch(t); m != nil && rank >= 0 {
				stacks[rank] = append(stacks[rank], strings.Join(m[1:], " "))
				if c := call.FindStringSubmatch(t); c != nil && calls[rank] == "" {
					calls[rank] = strings.ToLower(c[1])
				}
			}
		}
	}
	if len(stacks) < 2 {
		return -1
	}
	outside := -1
	for r, frames := range stacks {
		if slices.ContainsFunc(frames, waits.MatchString) {
			continue
		}
		if outside >= 0 {
			outside = -2
			break
		}
		outside = r
	}
	if outside >= 0 || len(stacks) == 2 {
		return max(outside, -1)
	}
	if r := odd(calls); r >= 0 && len(calls) == len(stacks) {
		return r
	}
	same := map[string][]int{}
	for r, frames := range stacks {
		same[strings.Join(frames, "\n")] = append(same[strings.Join(frames, "\n")], r)
	}
	if len(same) != 2 {
		return -1
	}
	for _, ranks := range same {
		if len(ranks) == 1 {
			return ranks[0]
		}
	}
	return -1
}

// call matches a call of a communication library in a frame.
var call = textmatch.New(`\bP?((?:MPIX?|shmem|gaspi|upcxx)_\w+|nccl[A-Z]\w+)`)

// odd returns the key whose value differs from the value that all other keys have. It returns -1 if there is no such
// key, or if there are fewer than three keys.
func odd(values map[int]string) int {
	count := map[string]int{}
	for _, v := range values {
		count[v]++
	}
	if len(count) != 2 || len(values) < 3 {
		return -1
	}
	only := -1
	for r, v := range values {
		if count[v] == 1 {
			only = r
		}
	}
	return only
}

var (
	// crowd matches a line about a stack that several ranks have in common.
	crowd = textmatch.New(`(?i)^\W*(?:[2-9]|\d{2,6}) ?(?:x|×|ranks?|tasks?|procs?|processes|threads?)\b.*(?:>|->|<-|\bin \w|:\d|_)`)
	// loner matches a line about a stack that only one rank has.
	loner = textmatch.New(`(?i)^\W*1 ?(?:x|×|rank|task|proc|process|thread)\b.*?(?:\[(?:ranks?:? ?)?(\d{1,6})\]|\(?\b(?:ranks?|tasks?)[ :=#]{1,2}(\d{1,6})\b)`)
)

// merged returns the only rank with a stack of its own, or -1. It reads the output of tools such as STAT, which merge
// the stacks of all ranks.
func merged(text []string) int {
	alone, others := -1, false
	for _, t := range text {
		if len(t) > longLine {
			continue
		}
		others = others || crowd.MatchString(t)
		if r := first(loner.FindStringSubmatch(t)); r >= 0 {
			if alone >= 0 && alone != r {
				return -1
			}
			alone = r
		}
	}
	if !others {
		return -1
	}
	return alone
}
