package sandbox

import (
	"strings"
	"testing"
)

func TestDoctorNamesEveryWall(t *testing.T) {
	testHost(t)
	for _, c := range Doctor() {
		t.Logf("%+v", c)
		if !c.OK && (c.Why == "" || c.Remedy == "") {
			t.Errorf("%s is missing without a reason or a remedy", c.Name)
		}
	}
}

func TestTheRemedyIsTheSwitchThatIsOff(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"/proc/sys/user/max_user_namespaces": "0\n"}, "sysctl user.max_user_namespaces="},
		{map[string]string{"/proc/sys/user/max_user_namespaces": "95000\n", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}, "apparmor_restrict_unprivileged_userns=0"},
		{map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0\n", "/proc/sys/kernel/unprivileged_userns_clone": "0\n"}, "unprivileged_userns_clone=1"},
		{map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "1\n"}, "--privileged"},
		{nil, "--privileged"},
	} {
		if got := userNSRemedy(func(path string) string { return c.files[path] }); !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q in it", c.files, got, c.want)
		}
	}
}
