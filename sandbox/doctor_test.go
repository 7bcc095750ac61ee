package sandbox

import "testing"

func TestDoctorNamesEveryWall(t *testing.T) {
	testHost(t)
	for _, c := range Doctor() {
		t.Logf("%+v", c)
		if !c.OK && (c.Why == "" || c.Remedy == "") {
			t.Errorf("%s is missing without a reason or a remedy", c.Name)
		}
	}
}
