package robust_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// What the overlay changes in the standard library, and why no other way will
// do: the wall clock of one process, broker included, can only be stepped inside
// of it. The kernel has no namespace for it, and the machine's must not be set.
const (
	nowBefore = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	nowAfter  = nowBefore + "\tsec += wallShift()\n"
	shiftFile = `package time

import (
	"syscall"
	"unsafe"
)

// wallSeconds is shared with the harness: seconds by which the wall clock is off.
var wallSeconds = openWallShift()

func openWallShift() *int64 {
	path, ok := syscall.Getenv("ROBUST_WALL_FILE")
	if !ok {
		return new(int64)
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("time: " + path + ": " + err.Error())
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	syscall.Close(fd)
	if err != nil {
		panic("time: " + path + ": " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}

func wallShift() int64 {
	if wallSeconds == nil {
		return 0
	}
	return *wallSeconds
}
`
)

// buildTenure builds the program with the clock seam, and with a wall clock that
// can be stepped when wall says so, which compiles everything anew once.
func buildTenure(dir string, wall bool) (string, error) {
	out := filepath.Join(dir, "tenure")
	args := []string{"build", "-buildvcs=false", "-tags", "tenure_test_clock", "-o", out}
	if wall {
		overlay, err := wallOverlay(dir)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, "github.com/seat-tenure/tenure/cmd/node")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return out, nil
}

func wallOverlay(dir string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	std := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		return "", err
	}
	if strings.Count(string(source), nowBefore) != 1 {
		return "", fmt.Errorf("%s does not have time.Now as this harness knows it; look at nowBefore in build_test.go", std)
	}
	files := map[string]string{"time.go": strings.Replace(string(source), nowBefore, nowAfter, 1), "robust_wall.go": shiftFile}
	replace := map[string]string{}
	for name, text := range files {
		path := filepath.Join(dir, "overlay-"+name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(std, name)] = path
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, raw, 0o600)
}
