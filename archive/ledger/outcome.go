package ledger

// Ending is what an outcome says in the columns that people had before there were outcomes.
type Ending struct {
	Status    string
	ErrorType OrNull
}

// Endings are all outcomes. A failed attempt that another follows has StatusRetry in place of the status here, and a
// cancelled call of which nothing was started StatusBlocked.
var Endings = map[string]Ending{
	"ok":                   {StatusSuccess, ""},
	"exit":                 {StatusError, "ExitError"},
	"signal":               {StatusError, "SignalError"},
	"cpu_limit":            {StatusError, "CpuLimitError"},
	"oom":                  {StatusError, "OutOfMemoryError"},
	"output_limit":         {StatusError, "OutputLimitError"},
	"interrupted":          {StatusError, "InterruptedError"},
	"spawn_failed":         {StatusError, "SpawnError"},
	"capture_failed":       {StatusError, "CaptureError"},
	"timeout":              {StatusTimeout, "TimeoutError"},
	"cancelled":            {StatusError, "CancelledError"},
	"unknown_tool":         {StatusBlocked, "UnknownTool"},
	"invalid_arguments":    {StatusBlocked, "InvalidArguments"},
	"duplicate_id":         {StatusBlocked, "DuplicateId"},
	"policy":               {StatusBlocked, "PolicyDenied"},
	"declined":             {StatusBlocked, "Declined"},
	"approval_unavailable": {StatusBlocked, "ApprovalUnavailable"},
	"sandbox_unavailable":  {StatusBlocked, "SandboxUnavailable"},
	"busy":                 {StatusBlocked, "Busy"},
}
