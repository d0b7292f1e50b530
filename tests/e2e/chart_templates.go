// The templates of a Helm chart, rendered by the engine that Helm uses (Go's text/template, missing keys are errors), with the
// chart's values and those of each YAML document on standard input over them. Nothing of Helm's or Sprig's functions: the chart
// uses none, and one that is named is an error.
//
//	chart_templates CHART-FOLDER <VALUES.yaml
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"gopkg.in/yaml.v3"
)

func over(base, top map[string]interface{}) map[string]interface{} {
	for name, value := range top {
		below, isMap := value.(map[string]interface{})
		if known, wasMap := base[name].(map[string]interface{}); isMap && wasMap {
			value = over(known, below)
		}
		base[name] = value
	}
	return base
}

func read(text []byte, err error) (map[string]interface{}, error) {
	found := map[string]interface{}{}
	if err != nil {
		return nil, err
	}
	return found, yaml.Unmarshal(text, &found)
}

func render(chart string) error {
	values, err := read(os.ReadFile(filepath.Join(chart, "values.yaml")))
	if err != nil {
		return err
	}
	about, err := read(os.ReadFile(filepath.Join(chart, "Chart.yaml")))
	if err != nil {
		return err
	}
	given, err := read(io.ReadAll(os.Stdin))
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s: no templates", chart)
	}
	top := map[string]interface{}{
		"Values":  over(values, given),
		"Chart":   about,
		"Release": map[string]interface{}{"Name": "spillway", "Namespace": "default", "Service": "Helm"},
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		parsed, err := template.New(filepath.Base(file)).Option("missingkey=error").Parse(string(text))
		if err != nil {
			return err
		}
		var out strings.Builder
		if err := parsed.Execute(&out, top); err != nil {
			return err
		}
		if strings.TrimSpace(out.String()) != "" {
			fmt.Printf("---\n# Source: %s\n%s\n", filepath.Base(file), out.String())
		}
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chart_templates CHART-FOLDER <VALUES.yaml")
		os.Exit(2)
	}
	if err := render(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
