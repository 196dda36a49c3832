(defun fib (n) (declare (fixnum n) (optimize speed)) (if (< n 2) n (the fixnum (+ (fib (- n 1)) (fib (- n 2))))))
(format t "~a~%" (fib 27))
(format t "~a~%" (mod (expt 7 3000) 1000003))
;; Garbage enough for several collections
(defun tree (depth) (if (zerop depth) nil (cons (tree (1- depth)) (tree (1- depth)))))
(defun size (tree) (if tree (+ 1 (size (car tree)) (size (cdr tree))) 0))
(format t "~a~%" (loop repeat 40 sum (size (tree 12))))
(gc :full t)
(format t "~a~%" (loop for i below 300 count (handler-case (if (oddp i) (error "odd") i) (error () nil))))
(format t "~a~%" (handler-case (labels ((deep (n) (+ 1 (deep n)))) (deep 0)) (storage-condition () "stack exhausted")))
(format t "~a~%" (handler-case (/ 1 (- (length *posix-argv*) (length *posix-argv*))) (division-by-zero () "division by zero")))
(let ((total 0) (mutex (sb-thread:make-mutex)))
  (mapc #'sb-thread:join-thread
        (loop repeat 4 collect
              (sb-thread:make-thread
               (lambda () (dotimes (i 1000) (sb-thread:with-mutex (mutex) (incf total)))))))
  (format t "~a~%" total))
(format t "~a~%" (loop for i below 30 sum (funcall (compile nil `(lambda (x) (* x ,i))) 3)))
(let ((table (make-hash-table :test #'equal)))
  (dotimes (i 20000) (incf (gethash (format nil "k~a" (mod (* i 7919) 101)) table 0)))
  (format t "~a~%" (hash-table-count table)))
(format t "~,6f ~a~%" (loop for i from 1 to 100000 sum (/ 1d0 i)) (sort (list 3 1 2) #'<))
(sb-ext:exit :code 9)
