package pairing

// builtins are the agents' own tools: true where it touches the machine (files, processes, network), false where it does
// not: plans, questions, looking for tools, subagents, whose calls stand for themselves. The names are those of Claude Code
// 2.1, Codex 0.171, Gemini CLI 0.61, OpenCode 1.18 and Qwen Code 0.24, and older ones of theirs.
var builtins = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range machineTools {
		all[name] = true
	}
	for _, name := range otherTools {
		all[name] = false
	}
	return all
}()

var machineTools = []string{
	// Claude Code
	"Bash", "BashOutput", "KillBash", "KillShell", "Edit", "MultiEdit", "Write", "NotebookEdit", "NotebookRead", "Read", "Glob", "Grep", "LS", "WebFetch", "WebSearch",
	"Monitor", "Workflow", "EnterWorktree", "ExitWorktree", "LSP", "PowerShell",
	// Codex
	"exec_command", "write_stdin", "shell", "shell_command", "local_shell", "container.exec", "apply_patch", "view_image", "web_search", "list_dir", "grep_files", "js_repl",
	// Gemini CLI and Qwen Code
	"run_shell_command", "read_file", "read_many_files", "write_file", "replace", "edit", "list_directory", "glob", "grep_search", "search_file_content", "ripgrep",
	"web_fetch", "google_web_search", "list_background_processes", "read_background_output", "lsp",
	// OpenCode
	"bash", "write", "multiedit", "patch", "read", "grep", "list", "webfetch", "websearch", "codesearch",
}

var otherTools = []string{
	// Claude Code
	"Agent", "Task", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TodoRead", "TodoWrite", "ToolSearch", "Skill", "SlashCommand", "AskUserQuestion",
	"EnterPlanMode", "ExitPlanMode", "ScheduleWakeup", "CronCreate", "CronDelete", "CronList", "ListAgents", "SendMessage", "ReportFindings", "DeferredToolPlaceholder",
	"ListMcpResourcesTool", "ReadMcpResourceTool", "StructuredOutput",
	// Codex
	"update_plan", "create_goal", "get_goal", "update_goal", "request_user_input", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource", "tool_search",
	"spawn_agent", "close_agent", "resume_agent", "send_input", "wait_agent",
	"multi_agent_v1__spawn_agent", "multi_agent_v1__close_agent", "multi_agent_v1__resume_agent", "multi_agent_v1__send_input", "multi_agent_v1__wait_agent",
	// Gemini CLI and Qwen Code
	"activate_skill", "enter_plan_mode", "exit_plan_mode", "invoke_agent", "update_topic", "write_todos", "todo_write", "save_memory", "ask_user", "ask_user_question", "task", "skill", "agent",
	// OpenCode
	"todowrite", "todoread", "question", "invalid", "plan_enter", "plan_exit",
}
