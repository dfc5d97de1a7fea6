// Package job holds what the Go programs share: the job that they are given and the result that they print.
package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"sort"
	"strings"
)

type Job struct {
	Name        string `json:"name"`
	Bootstrap   string `json:"bootstrap"`
	Partitions  int32  `json:"partitions"`
	Replication int16  `json:"replication"`
	Records     int    `json:"records"`
}

// Ranges says at which offset each partition's first and last record of a series is.
type Ranges map[int32][2]int64

func (ranges Ranges) Add(partition int32, offset int64) {
	if _, found := ranges[partition]; !found {
		ranges[partition] = [2]int64{offset, offset}
	}
	ranges[partition] = [2]int64{ranges[partition][0], offset}
}

type Result struct {
	Plain              []Ranges        `json:"plain"`
	Committed          Ranges          `json:"committed"`
	Aborted            Ranges          `json:"aborted"`
	Second             Ranges          `json:"second"`
	Third              Ranges          `json:"third"`
	Fenced             *string         `json:"fenced"`
	Read               [][4]any        `json:"read"` // partition, offset, key, value
	GroupOffsets       map[int32]int64 `json:"group_offsets"`
	TransactionOffsets map[int32]int64 `json:"transaction_offsets"`
	TopicListed        bool            `json:"topic_listed"`
	Groups             []string        `json:"groups"`
}

func Parse() (job Job) {
	Check(json.Unmarshal([]byte(os.Args[1]), &job))
	return job
}

func Check(err error) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
}

// Key and Value of record number i of a series.
func Key(series string, i int) string { return fmt.Sprintf("%s-%d", series, i) }
func Value(series string, i int) string {
	return fmt.Sprintf("%s %d %s", series, i, strings.Repeat("x", i%200))
}

func (result *Result) AddRead(partition int32, offset int64, key, value []byte) {
	result.Read = append(result.Read, [4]any{partition, offset, string(key), string(value)})
}

// AddGroup takes those of the job, by what follows its name.
func (result *Result) AddGroup(job Job, group string) {
	if rest, found := strings.CutPrefix(group, job.Name); found {
		result.Groups = append(result.Groups, rest)
	}
}

// SetFenced keeps the innermost error, which is the one that Kafka's protocol names.
func (result *Result) SetFenced(err error) {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		text := inner.Error()
		result.Fenced = &text
	}
}

func (result *Result) Print() {
	sort.Slice(result.Read, func(a, b int) bool {
		left, right := result.Read[a], result.Read[b]
		if left[0] != right[0] {
			return left[0].(int32) < right[0].(int32)
		}
		return left[1].(int64) < right[1].(int64)
	})
	sort.Strings(result.Groups)
	Check(json.NewEncoder(os.Stdout).Encode(result))
}
