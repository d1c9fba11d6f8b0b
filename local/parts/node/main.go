// Command pod does what a node in namespaces of its own needs from outside and inside of its pods: it carries
// connections over the border of the network namespace, and it is the program of the image that tests and
// samples run.
//
//	pod forward LISTEN DIAL   carries every connection to LISTEN on to DIAL
//	pod connect LISTEN        HTTP CONNECT proxy, through which the API server reaches kubelets, pods and Services
//	pod pause                 waits for SIGTERM; the sandbox of a pod
//	pod nothing               ends at once; an init container
//	pod serve [PORT...]       the HTTP server of test and sample pods: see serve.go
//	pod get URL               prints the answer of an HTTP server; exits with 1 unless it is a 200. By HTTPS it
//	                          asks the API server, with the ServiceAccount of the pod
//
// An address is unix:PATH or tcp:HOST:PORT.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	args := os.Args[1:]
	switch {
	case len(args) == 3 && args[0] == "forward":
		accept(args[1], func(from net.Conn) { forward(from, args[2]) })
	case len(args) == 2 && args[0] == "connect":
		accept(args[1], connect)
	case len(args) == 1 && args[0] == "pause":
		pause()
	case len(args) == 1 && args[0] == "nothing":
	case len(args) >= 1 && args[0] == "serve":
		serve(args[1:])
	case len(args) == 2 && args[0] == "get":
		get(args[1])
	default:
		log.Fatalf("usage: pod forward LISTEN DIAL | connect LISTEN | pause | nothing | serve [PORT...] | get URL; not %q", args)
	}
}

func accept(address string, handle func(net.Conn)) {
	network, at := split(address)
	listener, err := net.Listen(network, at)
	if err != nil {
		log.Fatal(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go handle(connection)
	}
}

func split(address string) (network, at string) {
	network, at, found := strings.Cut(address, ":")
	if !found {
		log.Fatalf("%q is not an address such as unix:PATH or tcp:HOST:PORT", address)
	}
	return network, at
}

func forward(from net.Conn, address string) {
	network, at := split(address)
	to, err := net.Dial(network, at)
	if err != nil {
		log.Print(err)
		from.Close()
		return
	}
	join(from, from, to)
}

// connect answers one CONNECT request and becomes the connection that was asked for.
func connect(client net.Conn) {
	reader := bufio.NewReader(client)
	request, err := http.ReadRequest(reader)
	if err != nil {
		log.Printf("not an HTTP request: %v", err)
		client.Close()
		return
	}
	if request.Method != http.MethodConnect {
		fmt.Fprint(client, "HTTP/1.1 405 Method Not Allowed\r\n\r\n")
		client.Close()
		return
	}
	target, err := net.DialTimeout("tcp", request.Host, 10*time.Second)
	if err != nil {
		log.Print(err)
		fmt.Fprintf(client, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: %d\r\n\r\n%v", len(err.Error()), err)
		client.Close()
		return
	}
	fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	join(client, reader, target)
}

// join copies in both directions until both have ended. What was buffered of the client is read first.
func join(client net.Conn, clientReader io.Reader, target net.Conn) {
	done := make(chan struct{})
	go func() {
		io.Copy(target, clientReader)
		closeWrite(target)
		close(done)
	}()
	io.Copy(client, target)
	closeWrite(client)
	<-done
	client.Close()
	target.Close()
}

// closeWrite passes the end of one direction on; the other one may go on.
func closeWrite(connection net.Conn) {
	if half, ok := connection.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}

// pause is the first process of a sandbox. It reaps the processes of a pod that shares its process namespace.
func pause() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			if pid, _ := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 {
				break
			}
		}
	}
}

func get(url string) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	client := http.Client{Timeout: 5 * time.Second}
	if request.URL.Scheme == "https" {
		authorities := x509.NewCertPool()
		authorities.AppendCertsFromPEM(read("ca.crt"))
		client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}
		request.Header.Set("Authorization", "Bearer "+string(read("token")))
	}
	response, err := client.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	io.Copy(os.Stdout, response.Body)
	if response.StatusCode != http.StatusOK {
		log.Fatalf("%s answered %s", url, response.Status)
	}
}

// read reads a file that every pod has, unless its ServiceAccount is not mounted.
func read(name string) []byte {
	content, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/" + name)
	if err != nil {
		log.Fatal(err)
	}
	return content
}
