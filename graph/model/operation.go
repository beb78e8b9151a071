package model

// Refusal is the schema's type Refused; that name is an error's code here.
type Refusal struct {
	Code    string
	Message string
}

// IsOperationResult makes it one.
func (Refusal) IsOperationResult() {}
