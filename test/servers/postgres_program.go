package servers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

func postgresProgram(ctx context.Context, o PostgresOptions) (*PostgresServer, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged()
	if err != nil {
		return nil, absent("postgres refuses to run as root: %w", err)
	}
	start := func(ctx context.Context) (*PostgresServer, *programs, error) {
		ports, err := freePorts(1)
		if err != nil {
			return nil, nil, err
		}
		dir, err := workdir("postgres")
		if err != nil {
			return nil, nil, err
		}
		g := &programs{dir: dir, stop: syscall.SIGQUIT} // "immediate shutdown": the files go away anyway
		if as != nil {
			if err := os.Chown(dir, as.uid, as.gid); err != nil {
				return nil, g, err
			}
		}
		data := filepath.Join(dir, "data")
		if err := initdb(ctx, bin, dir, data, as); err != nil {
			return nil, g, err
		}
		argv := []string{
			filepath.Join(bin, "postgres"), "-D", data, "-h", "127.0.0.1", "-p", strconv.Itoa(ports[0]),
			"-c", "unix_socket_directories=",
		}
		p, err := startProcess(command{
			argv: append(argv, o.args()...), dir: dir, log: filepath.Join(dir, "log"),
			account: as, orphan: syscall.SIGQUIT, // takes its children along
		})
		if err != nil {
			return nil, g, err
		}
		g.all = append(g.all, p)
		return newPostgres(Program, loopback(ports[0]), g.close), g, nil
	}
	return startPrograms(ctx, start, pingPostgres)
}

// initdb makes an empty cluster that trusts whoever connects over loopback.
func initdb(ctx context.Context, bin, dir, data string, as *account) error {
	p, err := startProcess(command{
		argv: []string{
			filepath.Join(bin, "initdb"), "-D", data, "-U", postgresUser, "-A", "trust",
			"-E", "UTF8", "--locale=C", "--no-sync",
		},
		dir: dir, log: filepath.Join(dir, "initdb.log"), account: as,
	})
	if err != nil {
		return err
	}
	return p.finish(ctx)
}

// postgresBin returns the folder that holds postgres and initdb: the highest
// version below /usr/lib/postgresql, else where PATH finds them.
func postgresBin() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // fails only on a bad pattern
	slices.SortFunc(found, func(a, b string) int { return postgresVersion(b) - postgresVersion(a) })
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			found = append(found, real)
		}
	}
	for _, path := range found {
		bin := filepath.Dir(path)
		if _, err := exec.LookPath(filepath.Join(bin, "postgres")); err == nil {
			return bin, nil
		}
	}
	return "", absent("postgres and initdb are neither in PATH nor below /usr/lib/postgresql (apt-get install postgresql)")
}

func postgresVersion(initdb string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
	if err != nil {
		return 0
	}
	return n
}
