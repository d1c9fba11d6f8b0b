package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// serve answers HTTP on some ports, by default on 8080.
//
//	/            the name of the pod and the path, as text
//	/env?name=X  the environment variable X
//	/healthz     200, or 503 after /healthz?set=503
//	/exit?code=N the program exits with this code
//	/use?mb=N    keeps N MiB of memory in use
func serve(ports []string) {
	if len(ports) == 0 {
		ports = []string{"8080"}
	}
	hostname, _ := os.Hostname()
	var health atomic.Int64
	health.Store(http.StatusOK)
	var used [][]byte
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s\n", hostname, r.URL.Path)
	})
	mux.HandleFunc("/env", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, os.Getenv(r.FormValue("name")))
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("set") != "" {
			health.Store(int64(number(r, "set")))
			return
		}
		w.WriteHeader(int(health.Load()))
	})
	mux.HandleFunc("/exit", func(w http.ResponseWriter, r *http.Request) {
		log.Printf("exiting with code %d, as asked", number(r, "code"))
		os.Exit(number(r, "code"))
	})
	mux.HandleFunc("/use", func(w http.ResponseWriter, r *http.Request) {
		block := make([]byte, number(r, "mb")<<20)
		for i := range block {
			block[i] = 1 // so that every page is really there
		}
		used = append(used, block)
		fmt.Fprintf(w, "%d blocks\n", len(used))
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	for _, port := range ports {
		server := &http.Server{Addr: ":" + port, Handler: mux}
		log.Printf("%s listens on port %s", hostname, port)
		go func() {
			if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
				log.Fatal(err)
			}
		}()
		defer func() {
			ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			server.Shutdown(ending)
		}()
	}
	<-ctx.Done()
	log.Print("stopping")
}

func number(r *http.Request, name string) int {
	value, err := strconv.Atoi(r.FormValue(name))
	if err != nil {
		log.Printf("%s: %v", r.URL, err)
	}
	return value
}
