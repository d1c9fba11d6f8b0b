package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
)

var groupVersion = schema.GroupVersion{Group: "apps.anupam.com", Version: "v1"}

// HelloApp is the kind of the same name, as far as the twins need it.
type HelloApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   HelloAppSpec   `json:"spec"`
	Status HelloAppStatus `json:"status"`
}

// HelloAppSpec is the state that is wanted.
type HelloAppSpec struct {
	Image string `json:"image"`
	Size  int32  `json:"size"`
}

// HelloAppStatus holds the same fields as the one that Kindred's operator writes.
type HelloAppStatus struct {
	Replicas           int32              `json:"replicas"`
	ReadyReplicas      int32              `json:"readyReplicas"`
	Selector           string             `json:"selector,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// HelloAppList is what a list answers.
type HelloAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []HelloApp `json:"items"`
}

// helloAppApply is what is applied to the status, in the form in which generators write it.
type helloAppApply struct {
	applymeta.TypeMetaApplyConfiguration    `json:",inline"`
	*applymeta.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`

	Status *HelloAppStatus `json:"status,omitempty"`
}

func (*helloAppApply) IsApplyConfiguration()    {}
func (a *helloAppApply) GetName() *string       { return a.Name }
func (a *helloAppApply) GetNamespace() *string  { return a.Namespace }
func (a *helloAppApply) GetKind() *string       { return a.Kind }
func (a *helloAppApply) GetAPIVersion() *string { return a.APIVersion }

func (s *HelloAppStatus) deepCopy() HelloAppStatus {
	out := *s
	if s.Conditions != nil {
		out.Conditions = make([]metav1.Condition, len(s.Conditions))
		for i := range s.Conditions {
			s.Conditions[i].DeepCopyInto(&out.Conditions[i])
		}
	}
	return out
}

func (in *HelloApp) deepCopyInto(out *HelloApp) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status = in.Status.deepCopy()
}

// DeepCopyObject makes it a runtime.Object.
func (in *HelloApp) DeepCopyObject() runtime.Object {
	out := new(HelloApp)
	in.deepCopyInto(out)
	return out
}

// DeepCopyObject makes it a runtime.Object.
func (in *HelloAppList) DeepCopyObject() runtime.Object {
	out := &HelloAppList{TypeMeta: in.TypeMeta, Items: make([]HelloApp, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		in.Items[i].deepCopyInto(&out.Items[i])
	}
	return out
}

func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &HelloApp{}, &HelloAppList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
