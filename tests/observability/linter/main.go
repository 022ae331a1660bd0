// Lints dashboards with the rules of Grafana's dashboard linter: linter FILE... . Prints the findings, and exits with 1
// if there are any. Exceptions, with their reasons, are in the file .lint next to the first dashboard.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/dashboard-linter/lint"
)

func run(files []string) error {
	config := lint.NewConfigurationFile()
	if err := config.Load(filepath.Join(filepath.Dir(files[0]), ".lint")); err != nil {
		return err
	}
	rules := lint.NewRuleSet()
	var dashboards []lint.Dashboard
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		dashboard, err := lint.NewDashboard(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		dashboards = append(dashboards, dashboard)
	}
	results, err := rules.Lint(dashboards)
	if err != nil {
		return err
	}
	results.Configure(config)
	results.ReportByRule()
	if results.MaximumSeverity() >= lint.Warning {
		return fmt.Errorf("dashboards have faults")
	}
	return nil
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "linter FILE...")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
