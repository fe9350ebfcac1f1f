package curve

import (
	"bytes"
	"strings"
)

// measure reads the value of a metric, which follows its name at i.
func (s *scanner) measure(i int) (float64, int, bool) {
	t := s.text
	for n := 0; i < len(t) && n < 12 && bytes.IndexByte([]byte(" \t:='\"|(["), t[i]) >= 0; n++ {
		i++
	}
	if bytes.HasPrefix(t[i:], []byte("tensor(")) {
		i += len("tensor(")
	}
	sign := 1.0
	if i+1 < len(t) && (t[i] == '-' || t[i] == '+' && isLetter(t[i+1])) {
		if t[i] == '-' {
			sign = -1
		}
		i++
	}
	value, end, ok := notFinite(t, i)
	if !ok {
		list := i > 0 && (t[i-1] == '[' || t[i-1] == '(')
		if value, end, ok = decimal(t, i); !ok || list {
			value, end, ok = number(t, i)
		}
	}
	return sign * value, end, ok
}

// fractions has names of metrics, beside losses, whose values seldom are in the thousands.
var fractions = set("acc accuracy f1 bleu auc auroc iou miou dice mse mae rmse")

// measureOf is like measure, for a metric whose name ends with word. It does not read a number such as "2,293", which
// may be 2.293 or 2293, if the metric is a loss or the like.
func (s *scanner) measureOf(word string, i int) (float64, int, bool) {
	value, end, ok := s.measure(i)
	if !ok || !strings.HasSuffix(word, "loss") && !fractions[word] {
		return value, end, ok
	}
	from := end
	for from > i && (isDigit(s.text[from-1]) || s.text[from-1] == ',') {
		from--
	}
	grouped := value >= 1000 && bytes.IndexByte(s.text[from:end], ',') > 0
	goes := end+1 < len(s.text) && s.text[end] == ',' && isDigit(s.text[end+1]) && s.text[from-1] != '.' && s.text[from-1] != '[' && s.text[from-1] != '('
	return value, end, !grouped && !goes
}

// noteLoss records the loss of the line. A name of the whole loss replaces the name of a part of it.
func (s *scanner) noteLoss(word string, end int) {
	s.metric = true
	whole := word == "loss" || word == "train_loss" || word == "training_loss" || word == "total_loss" || word == "avg_loss" || word == "lm_loss"
	if s.loss.plain || s.loss.found && !whole {
		return
	}
	value, _, _ := s.measureOf(word, end)
	s.loss.found, s.loss.plain, s.loss.value = true, whole, value
}
