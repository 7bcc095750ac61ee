package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"toolrun/archive/internal/jsonl"
)

// openCodeFile is what stands in the storage/session/<project>/<session>.json of an OpenCode before 1.2. Its messages are
// storage/message/<session>/<message>.json, and their parts storage/part/<message>/<part>.json; the names grow with time.
type openCodeFile struct {
	ID        string `json:"id"`
	ProjectID string `json:"projectID"`
	ParentID  string `json:"parentID"`
}

type openCodeFileReader struct{ *openCodeReader }

func newOpenCodeFile(path string) reader {
	return &openCodeFileReader{&openCodeReader{newBuilder(path, OpenCode)}}
}

func (o *openCodeFileReader) line(text []byte) error {
	var s openCodeFile
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	folder := filepath.Dir(o.t.Path)
	storage := filepath.Dir(filepath.Dir(folder))
	o.t.Sub = s.ParentID != ""
	o.t.SessionID = rootOf(s.ID, func(id string) string {
		var above openCodeFile
		if id == s.ID {
			return s.ParentID
		}
		if readJSON(filepath.Join(folder, filepath.Base(id)+".json"), &above) != nil {
			return ""
		}
		return above.ParentID
	})
	messages, err := jsonNames(filepath.Join(storage, "message", filepath.Base(s.ID)))
	if err != nil {
		return err
	}
	for _, path := range messages {
		var m openCodeMessage
		if err := readJSON(path, &m); err != nil {
			o.damaged(path, err)
		}
		parts, err := jsonNames(filepath.Join(storage, "part", strings.TrimSuffix(filepath.Base(path), ".json")))
		if err != nil {
			return err
		}
		var list []openCodePart
		for _, path := range parts {
			var p openCodePart
			if err := readJSON(path, &p); err != nil {
				o.damaged(path, err)
				continue
			}
			list = append(list, p)
		}
		o.message(&m, list)
	}
	return nil
}

func (o *openCodeFileReader) damaged(path string, err error) {
	o.t.Damaged = append(o.t.Damaged, &jsonl.Damage{File: path, Line: 1, Err: err})
}

// jsonNames are the .json files of a folder, sorted; of one that is not there, none.
func jsonNames(dir string) (list []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") && e.Type().IsRegular() {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	return list, err
}

// maxPart is what is read of one file of a session.
const maxPart = 64 << 20

func readJSON(path string, v any) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("not a regular file")
	case info.Size() > maxPart:
		return fmt.Errorf("more than %d bytes", maxPart)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
