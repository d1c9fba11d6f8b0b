package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// tuned reads from the cache, applies only what differs there, and is woken only by what may matter.
type tuned struct{ client.Client }

func (r *tuned) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var app HelloApp
	if err := r.Get(ctx, req.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	replicas, ready, err := r.child(ctx, &app)
	if err != nil {
		return ctrl.Result{}, err
	}
	status := observedStatus(&app, replicas, ready)
	if equality.Semantic.DeepEqual(status, app.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Apply(ctx, applyOfStatus(&app, status), fieldOwner, client.ForceOwnership)
}

// child brings the Deployment about; it answers with its pods and the ready ones among them.
func (r *tuned) child(ctx context.Context, app *HelloApp) (int32, int32, error) {
	var live appsv1.Deployment
	err := r.Get(ctx, client.ObjectKeyFromObject(app), &live)
	if err == nil && standsAsDesired(app, &live) {
		return live.Status.Replicas, live.Status.ReadyReplicas, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, 0, err
	}
	deployment := desiredDeployment(app)
	if err := r.Apply(ctx, deployment, fieldOwner, client.ForceOwnership); err != nil {
		return 0, 0, err
	}
	replicas, ready := replicasOf(deployment)
	return replicas, ready, nil
}

func (r *tuned) setup(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&HelloApp{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}, builder.WithPredicates(childMatters())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// childMatters lets changes of a Deployment through. Its creation is the twin's own work, whose answer told all that the
// event would; after a start, each app is looked at anyway.
func childMatters() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || !sameReplicas(e.ObjectOld, e.ObjectNew) ||
				!equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
				!equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences())
		},
	}
}

func sameReplicas(a, b client.Object) bool {
	before, after := a.(*appsv1.Deployment).Status, b.(*appsv1.Deployment).Status
	return before.Replicas == after.Replicas && before.ReadyReplicas == after.ReadyReplicas
}

// replicasOf reads them from what the server answered to an apply.
func replicasOf(applied *applyapps.DeploymentApplyConfiguration) (int32, int32) {
	var replicas, ready int32
	if status := applied.Status; status != nil {
		if status.Replicas != nil {
			replicas = *status.Replicas
		}
		if status.ReadyReplicas != nil {
			ready = *status.ReadyReplicas
		}
	}
	return replicas, ready
}
