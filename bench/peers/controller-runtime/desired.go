package main

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
)

const (
	managedByLabel = "app.kubernetes.io/managed-by"
	container      = "helloapp"
)

// desiredDeployment is the child that an app wants: the one that Kindred renders.
func desiredDeployment(app *HelloApp) *applyapps.DeploymentApplyConfiguration {
	selector := map[string]string{"app": app.Name}
	owner := applymeta.OwnerReference().
		WithAPIVersion(groupVersion.String()).WithKind("HelloApp").WithName(app.Name).WithUID(app.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	template := applycore.PodTemplateSpec().WithLabels(selector).
		WithSpec(applycore.PodSpec().WithContainers(applycore.Container().WithName(container).WithImage(app.Spec.Image)))
	return applyapps.Deployment(app.Name, app.Namespace).
		WithLabels(map[string]string{"app": app.Name, managedByLabel: "twin"}).
		WithOwnerReferences(owner).
		WithSpec(applyapps.DeploymentSpec().
			WithReplicas(app.Spec.Size).
			WithSelector(applymeta.LabelSelector().WithMatchLabels(selector)).
			WithTemplate(template))
}

// standsAsDesired tells whether all that desiredDeployment says is true of a live one.
func standsAsDesired(app *HelloApp, live *appsv1.Deployment) bool {
	containers := live.Spec.Template.Spec.Containers
	return metav1.IsControlledBy(live, app) &&
		live.Labels["app"] == app.Name && live.Labels[managedByLabel] == "twin" &&
		live.Spec.Replicas != nil && *live.Spec.Replicas == app.Spec.Size &&
		live.Spec.Template.Labels["app"] == app.Name &&
		len(containers) == 1 && containers[0].Name == container && containers[0].Image == app.Spec.Image
}

// observedStatus is the status of an app whose child has been applied, with the conditions that Kindred writes.
// A condition keeps its time while its status stays.
func observedStatus(app *HelloApp, replicas, readyReplicas int32) HelloAppStatus {
	status := HelloAppStatus{
		Replicas:           replicas,
		ReadyReplicas:      readyReplicas,
		Selector:           "app=" + app.Name,
		ObservedGeneration: app.Generation,
		Conditions:         app.Status.deepCopy().Conditions,
	}
	condition := func(kind string, holds metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: holds, Reason: reason, Message: message, ObservedGeneration: app.Generation,
		})
	}
	if readyReplicas >= app.Spec.Size {
		condition("Ready", metav1.ConditionTrue, "Available", "Deployment "+app.Name+" is available")
		meta.RemoveStatusCondition(&status.Conditions, "Reconciling")
	} else {
		condition("Ready", metav1.ConditionFalse, "Progressing", "Deployment "+app.Name+": pods are not ready yet")
		condition("Reconciling", metav1.ConditionTrue, "Progressing", "Deployment "+app.Name+": pods are not ready yet")
	}
	return status
}

func applyOfStatus(app *HelloApp, status HelloAppStatus) *helloAppApply {
	return &helloAppApply{
		TypeMetaApplyConfiguration:   *applymeta.TypeMeta().WithAPIVersion(groupVersion.String()).WithKind("HelloApp"),
		ObjectMetaApplyConfiguration: applymeta.ObjectMeta().WithName(app.Name).WithNamespace(app.Namespace).WithUID(app.UID),
		Status:                       &status,
	}
}
