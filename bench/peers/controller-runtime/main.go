// Command controller-runtime reconciles HelloApps as Kindred's operator does, for comparison: one Deployment for each, and
// its status, both by server-side apply.
package main

import (
	"flag"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const fieldOwner = client.FieldOwner("twin")

type twin interface {
	setup(mgr ctrl.Manager, workers int) error
}

func main() {
	var kind, kubeconfig, namespace, metrics string
	var workers int
	// controller-runtime has a flag --kubeconfig of its own on the command line's flag set.
	flags := flag.NewFlagSet("controller-runtime", flag.ExitOnError)
	flags.StringVar(&kind, "twin", "plain", "plain or tuned")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "whose requests they are")
	flags.StringVar(&namespace, "lease-namespace", "default", "where the Lease lies")
	flags.StringVar(&metrics, "metrics", "127.0.0.1:8080", "address of /metrics")
	flags.IntVar(&workers, "workers", 16, "objects reconciled at once")
	_ = flags.Parse(os.Args[1:]) // it exits on errors
	if err := run(kind, kubeconfig, namespace, metrics, workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kind, kubeconfig, namespace, metrics string, workers int) error {
	ctrl.SetLogger(zap.New())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // the server's own priority and fairness is the limit
	scheme := runtime.NewScheme()
	addToScheme(scheme)
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	options := ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: metrics},
		LeaderElection:                true,
		LeaderElectionID:              "twin-" + kind,
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
	}
	if kind == "tuned" {
		options.Cache = cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	reconciler, err := twinOf(kind, mgr.GetClient())
	if err != nil {
		return err
	}
	if err := reconciler.setup(mgr, workers); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func twinOf(kind string, c client.Client) (twin, error) {
	switch kind {
	case "plain":
		return &plain{c}, nil
	case "tuned":
		return &tuned{c}, nil
	default:
		return nil, fmt.Errorf("--twin=%s: it may be plain or tuned", kind)
	}
}
