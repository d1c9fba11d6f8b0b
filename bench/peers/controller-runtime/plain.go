package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// plain is written as the guides show it: every reconcile applies the child and the status, and the server sees to it
// that what has not changed stays as it is.
type plain struct{ client.Client }

func (r *plain) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var app HelloApp
	if err := r.Get(ctx, req.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployment := desiredDeployment(&app)
	if err := r.Apply(ctx, deployment, fieldOwner, client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	replicas, ready := replicasOf(deployment)
	status := applyOfStatus(&app, observedStatus(&app, replicas, ready))
	return ctrl.Result{}, r.Status().Apply(ctx, status, fieldOwner, client.ForceOwnership)
}

func (r *plain) setup(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&HelloApp{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}
