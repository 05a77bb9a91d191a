package fence

import (
	"errors"
	"fmt"
)

// Namespace separates what must never see each other's records: tenants, and
// consumer groups. Namespaces are comparable. The zero Namespace is none.
type Namespace struct {
	text      string
	group     string
	tenant    string
	hasTenant bool
}

// NewNamespace makes the namespace of a group of a tenant. [Nil] is for those
// who have no tenants; it is another tenant than the empty one. An empty group
// is refused.
func NewNamespace(tenant Part, group string) (Namespace, error) {
	if group == "" {
		return Namespace{}, errors.New("namespace has no group: name the consumer group or job")
	}
	if tenant.IsFallback() {
		return Namespace{}, fmt.Errorf("namespace tenant %s is a fallback id: use a name or nil", tenant)
	}
	return Namespace{
		text:      joinText([]Part{tenant, Text(group)}, nil),
		group:     group,
		tenant:    string(tenant.Value()),
		hasTenant: !tenant.IsNil(),
	}, nil
}

// ParseNamespace is the inverse of [Namespace.Text]. It is as strict as
// [ParseKey].
func ParseNamespace(text string) (Namespace, error) {
	parts, err := ParseKey(text)
	if err != nil {
		return Namespace{}, fmt.Errorf("namespace: %w", err)
	}
	if len(parts) != 2 || parts[1].IsNil() || parts[1].IsFallback() {
		return Namespace{}, fmt.Errorf("namespace %q is not tenant:group (%s:group without a tenant)", text, nilText)
	}
	return NewNamespace(parts[0], string(parts[1].Value()))
}

// Text returns tenant:group by the rule of keys, %-:group without a tenant.
func (n Namespace) Text() string { return n.text }

// String returns the same as [Namespace.Text].
func (n Namespace) String() string { return n.text }

// Tenant returns the tenant, [Nil] if there is none.
func (n Namespace) Tenant() Part {
	if !n.hasTenant {
		return Part{}
	}
	return Text(n.tenant)
}

// Group returns the group.
func (n Namespace) Group() string { return n.group }

// IsZero reports whether n is the zero Namespace, which [NewNamespace] never
// makes.
func (n Namespace) IsZero() bool { return n == Namespace{} }
