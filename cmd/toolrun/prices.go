package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"toolrun/archive/ledger"
	"toolrun/catalog"
	"toolrun/catalog/prices"
)

// pricesName is the file in the data directory that an import leaves.
const pricesName = "prices.json"

func (a *app) pricesCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prices [PROVIDER]",
		Short: "List the prices of models by which calls are estimated; of a provider, all of them.",
		Long: "List the prices of models by which calls are estimated, in the order in which they count: the catalog's, the imported\n" +
			"table, the few that are part of toolrun. Of the imported ones only their number is told, unless a provider is named.",
		Example:     "  toolrun prices\n  toolrun prices anthropic",
		Args:        cobra.MaximumNArgs(1),
		Annotations: exitsAlso(statusData),
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := a.dataDir()
			if err != nil {
				return err
			}
			c, _, err := a.loadCatalog()
			if err != nil && !errors.Is(err, catalog.ErrNotFound) {
				return err
			}
			table, err := a.priceTable(c, data)
			if err != nil {
				return err
			}
			provider := ""
			if len(args) == 1 {
				provider = args[0]
			}
			return a.printPrices(table, provider)
		},
	}
	cmd.AddCommand(a.pricesImportCmd())
	return cmd
}

func (a *app) pricesImportCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Take over the model prices that LiteLLM publishes, from a file that you fetched.",
		Long: "Take over the model prices that LiteLLM publishes (model_prices_and_context_window.json), from a file that you fetched:\n" +
			"toolrun asks no network. They replace those of an earlier import and hold for runs that begin from now on.",
		Example:     "  toolrun prices import model_prices_and_context_window.json",
		Args:        cobra.ExactArgs(1),
		Annotations: exitsAlso(statusData),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := readBounded(args[0], prices.MaxImportBytes)
			if err != nil {
				return err
			}
			list, skipped, err := prices.ReadLiteLLM(bytes.NewReader(text))
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			sum := sha256.Sum256(text)
			return a.importPrices(prices.NewImported(ledger.FormatTime(a.now()), hex.EncodeToString(sum[:]), list), skipped)
		},
	}
}

// readBounded reads a file of at most max bytes.
func readBounded(path string, max int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > max {
		return nil, fmt.Errorf("%s: more than %d bytes", path, max)
	}
	return os.ReadFile(path)
}

// importPrices writes the file whole or not at all.
func (a *app) importPrices(f prices.Imported, skipped int) error {
	d, err := a.openForWriting()
	if err != nil {
		return err
	}
	defer d.Close()
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	path := filepath.Join(d.Path(), pricesName)
	if err := replaceFile(path, append(text, '\n')); err != nil {
		return fmt.Errorf("write the prices: %w", err)
	}
	if done, err := a.json(map[string]any{"path": path, "models": len(f.Models), "skipped": skipped}); done {
		return err
	}
	return a.say("Imported the prices of %s into %s; %s without a price per token passed over.", count(len(f.Models), "model"), path, count(skipped, "model"))
}

// replaceFile puts a file in the place of another, synced, at one moment.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
