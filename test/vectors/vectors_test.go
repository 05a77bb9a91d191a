package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const published = "../../fence/testdata/keys.json"

func TestLibraryGivesThePublishedAnswers(t *testing.T) {
	if err := run(published, false); err != nil {
		t.Error(err)
	}
}

func TestDifferenceIsFoundAndWrittenOnlyOnDemand(t *testing.T) {
	right, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Replace(right, []byte(`"effect_id":"4`), []byte(`"effect_id":"5`), 1)
	if bytes.Equal(right, wrong) {
		t.Fatal("found no effect id to spoil")
	}
	path := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(path, wrong, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(path, false); err == nil {
		t.Error("a wrong effect id passed")
	}
	if kept, err := os.ReadFile(path); err != nil || !bytes.Equal(kept, wrong) {
		t.Errorf("the file was written without being asked for: %v", err)
	}
	if err := run(path, true); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, right) {
		t.Errorf("writing did not give the published file: %v", err)
	}
}

func TestPythonGivesThePublishedAnswers(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("python3 is missing, and CI=true")
		}
		t.Skip("SKIPPED 1 CHECK: python3 is missing, the key vectors were not built in another language")
	}
	out, err := exec.CommandContext(t.Context(), python, "check.py", published).CombinedOutput()
	if err != nil || !strings.Contains(string(out), " 0 wrong") {
		t.Errorf("check.py: %v\n%s", err, out)
	}
	t.Logf("%s", bytes.TrimSpace(out))
}
